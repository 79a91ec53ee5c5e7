//go:build linux

package kubernetes

import (
	"testing"
	"time"

	storagev1 "k8s.io/api/storage/v1"

	"github.com/llmsandbox/llmsandbox"
	"github.com/llmsandbox/llmsandbox/backend/backendtest"
	"github.com/llmsandbox/llmsandbox/backend/kubernetes"
	"github.com/llmsandbox/llmsandbox/internal/testcluster"
)

// conformance is the suite's view of the cluster at a place's address.
func conformance(address string) (backendtest.Config, error) {
	p, err := placeAt(address)
	if err != nil {
		return backendtest.Config{}, err
	}
	b, err := kubernetes.New(new(p.options()))
	if err != nil {
		return backendtest.Config{}, err
	}
	return backendtest.Config{Backend: b, Address: address, Lacks: map[backendtest.Feature]string{
		backendtest.NoHostPaths:  "the kubelet mounts volumes by their folders on the node",
		backendtest.OnlyLoopback: "every pod has an address, which a NetworkPolicy cuts off",
		backendtest.OOMAlone:     "the kubelet lets nothing in a container be spared, and newer ones kill all of it; gVisor's kernel is itself what is killed",
		backendtest.Registries:   "an installation is the same on every backend, and Docker's cases make the real ones",
		backendtest.Mounts:       "a node does not have the files of this machine",

		backendtest.CopyOnWriteMounts: "a node does not have the files of this machine",
	}}, nil
}

func testConformance(t *testing.T, runtimeClass string, edit func(*backendtest.Config)) {
	leakFree(t)
	p := newPlace(t)
	p.node.Images(t)
	p.RuntimeClass = runtimeClass
	p.StorageClass = p.withStorage(t, storagev1.VolumeBindingWaitForFirstConsumer, 1)
	p.TTL = kubernetes.DefaultTTL // dozens of pods that start at once take their time to be reached
	other := p
	other.TTL = 15 * time.Second // the suite waits for what an owner that was killed has left
	c, err := conformance(p.address(t))
	if err != nil {
		t.Fatal(err)
	}
	c.Address = other.address(t)
	c.Outside = newOutside(p)
	if edit != nil {
		edit(&c)
	}
	backendtest.Run(t, c)
}

func TestConformance(t *testing.T) { testConformance(t, "", nil) }

// TestRootConformance is what code tries against the pod, its neighbours and the agent, as root that may write to the root file system.
func TestRootConformance(t *testing.T) {
	leakFree(t)
	p := newPlaceOf(t, "baseline")
	p.node.Images(t)
	p.TTL = kubernetes.DefaultTTL
	c, err := conformance(p.address(t))
	if err != nil {
		t.Fatal(err)
	}
	c.Outside = newOutside(p)
	c.Options = func(o *llmsandbox.Options) {
		if o.Backend == c.Backend {
			o.User, o.WritableRoot, o.BestEffort = "root", true, true
		}
	}
	c.Lacks[backendtest.ReadOnlyRoot], c.Lacks[backendtest.NotRoot] = "that is what this is about", "and that"
	c.Lacks[backendtest.UsersApart] = "root of a container is the agent's user, and the owner of the image's files"
	c.Lacks[backendtest.KernelFiles] = "a pod cannot hide files of /proc: the control user-namespace says so"
	c.Only = []string{
		"AbuseCatalogue", "AbuseNeighbours", "Abuse39to41NothingIsShared", "Abuse78to79And84Forgery",
		"Abuse84ReachTheAgent", "Abuse84EndTheAgent", "Abuse84EndTheSubreaper",
		"Acceptance80Reset", "Abuse99Reset", "ResetNetwork",
	}
	backendtest.Run(t, c)
}

// With a kernel of its own in user space, which answers some questions otherwise.
func TestGVisorConformance(t *testing.T) {
	testConformance(t, testcluster.GVisor, func(c *backendtest.Config) {
		c.Lacks[backendtest.LinuxKernel] = "gVisor's is a program, whose settings are of no process but those inside"
		c.Starts = 8
	})
}
