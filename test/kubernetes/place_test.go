//go:build linux

package kubernetes

import (
	"encoding/json"
	"testing"
	"time"

	client "k8s.io/client-go/kubernetes"

	"github.com/llmsandbox/llmsandbox/backend/kubernetes"
	"github.com/llmsandbox/llmsandbox/internal/testcluster"
)

// A place is where sandboxes are, and how they are made: all that another process has to
// know to reach them, as JSON.
type place struct {
	Kubeconfig   string
	Namespace    string
	RuntimeClass string        `json:",omitempty"`
	TTL          time.Duration // of sandboxes whose owner has died
	StorageClass string        `json:",omitempty"` // of volumes, see withStorage

	client client.Interface // to look at it from outside
	node   *testcluster.Cluster
}

// newPlace is a namespace of the test's own, of the Pod Security level restricted.
func newPlace(t testing.TB) place {
	t.Helper()
	return newPlaceOf(t, "restricted")
}

// newPlaceOf is one of another level.
func newPlaceOf(t testing.TB, level string) place {
	t.Helper()
	c := testcluster.Start(t)
	return place{Kubeconfig: c.Kubeconfig, Namespace: c.NamespaceOf(t, level), TTL: time.Minute, client: c.Client(t), node: c}
}

func (p place) address(t testing.TB) string {
	t.Helper()
	text, err := json.Marshal(p)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// options are those of a backend there.
func (p place) options() kubernetes.Options {
	return kubernetes.Options{
		Kubeconfig: p.Kubeconfig, Namespace: p.Namespace,
		RuntimeClass: p.RuntimeClass, TTL: p.TTL, StorageClass: p.StorageClass,
		NetworkPolicyEnforced: true, // TestNetworkIsCutOff shows it
		// A node that was away in a test before may count as not ready once more: controllers that
		// have just come back believe what they saw last.
		WaitForNode: time.Minute,
	}
}

// placeAt returns a place by its address.
func placeAt(address string) (place, error) {
	var p place
	err := json.Unmarshal([]byte(address), &p)
	return p, err
}

// newBackend returns a backend with options that edit, where it is not nil, has changed.
func (p place) newBackend(t testing.TB, edit func(*kubernetes.Options)) *kubernetes.Backend {
	t.Helper()
	o := p.options()
	if edit != nil {
		edit(&o)
	}
	if o.Pod != "" {
		o.WaitForNode = 0 // it has one
	}
	b, err := kubernetes.New(&o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := b.Close(); err != nil {
			t.Error(err)
		}
	})
	return b
}
