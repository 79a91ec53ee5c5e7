package cli

import (
	"encoding/json"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/llmsandbox/llmsandbox/backend/kubernetes"
)

func TestKubernetesHasItsName(t *testing.T) {
	if kubernetesName != kubernetes.Name {
		t.Errorf("%q, the backend calls itself %q", kubernetesName, kubernetes.Name)
	}
}

func TestClusterOptions(t *testing.T) {
	p := place{Backend: "kubernetes", Cluster: clusterFlags{Kubeconfig: "admin.conf", Context: "test", Namespace: "team"}, Pod: podFlags{
		RuntimeClass: "gvisor", AgentImage: "agent:1", PullPolicy: "ifnotpresent", PullSecrets: []string{"a", "b"},
		ServiceAccount: "runner", NodeSelector: []string{"disk=fast"}, WaitForNode: "5m", StartTimeout: "90s", NetworkEnforced: true,
	}}
	o, err := p.clusterOptions()
	if err != nil {
		t.Fatal(err)
	}
	if want, _ := filepath.Abs("admin.conf"); o.Kubeconfig != want || o.Context != "test" || o.Namespace != "team" {
		t.Errorf("where: %+v", o)
	}
	if o.RuntimeClass != "gvisor" || o.AgentImage != "agent:1" || o.PullPolicy != "IfNotPresent" || !slices.Equal(o.PullSecrets, []string{"a", "b"}) ||
		o.ServiceAccount != "runner" || o.NodeSelector["disk"] != "fast" || o.WaitForNode != 5*time.Minute || o.StartTimeout != 90*time.Second ||
		!o.NetworkPolicyEnforced {
		t.Errorf("what: %+v", o)
	}
	// A supervisor is told of the same place.
	text, err := json.Marshal(p)
	if err != nil {
		t.Fatal(err)
	}
	var there place
	if err := json.Unmarshal(text, &there); err != nil || !reflect.DeepEqual(there, p) {
		t.Errorf("%+v travels as %+v, %v", p, there, err)
	}
}

// Every flag for clusters is refused where there is none.
func TestClusterFlagsAreRefusedElsewhere(t *testing.T) {
	every := []podFlags{
		{Pod: "x"}, {Container: "x"}, {Template: "x"}, {RuntimeClass: "x"}, {AgentImage: "x"}, {PullPolicy: "x"}, {PullSecrets: []string{"x"}},
		{ServiceAccount: "x"}, {NodeSelector: []string{"x"}}, {WaitForNode: "x"}, {StartTimeout: "x"}, {NetworkEnforced: true},
	}
	if n := reflect.TypeFor[podFlags]().NumField(); n != len(every) {
		t.Errorf("%d flags are tried, there are %d", len(every), n)
	}
	for _, f := range every {
		for _, backend := range []string{"local", "docker", "podman", "micromamba"} {
			p := place{Backend: backend, Pod: f}
			if err := p.check("", false); err == nil || !strings.Contains(err.Error(), "the backend is "+backend+": add --backend kubernetes") {
				t.Errorf("%s, %+v: %v", backend, f, err)
			}
		}
	}
	for _, f := range []clusterFlags{{Kubeconfig: "x"}, {Context: "x"}, {Namespace: "x"}} {
		p := place{Backend: "docker", Cluster: f}
		if _, err := p.open(); err == nil || !strings.Contains(err.Error(), "is for clusters, and the backend is docker") {
			t.Errorf("%+v: %v", f, err)
		}
	}
}

func TestAgain(t *testing.T) {
	for want, p := range map[string]place{
		"":                  {Backend: "local"},
		" --backend podman": {Backend: "podman"},
		" --backend kubernetes --kube-context c --namespace n": {Backend: "kubernetes", Cluster: clusterFlags{Context: "c", Namespace: "n"}},
	} {
		if got := p.again(); got != want {
			t.Errorf("%+v: %q, want %q", p, got, want)
		}
	}
}
