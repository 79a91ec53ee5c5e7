//go:build linux

package kubernetes

import (
	"errors"
	"strings"
	"testing"

	"github.com/llmsandbox/llmsandbox"
	"github.com/llmsandbox/llmsandbox/backend/kubernetes"
	"github.com/llmsandbox/llmsandbox/internal/kubernetes/access"
	"github.com/llmsandbox/llmsandbox/internal/kubernetes/diagnose"
	"github.com/llmsandbox/llmsandbox/internal/kubernetes/isolation"
	"github.com/llmsandbox/llmsandbox/internal/testfaults"
)

// What doctor has seen of a cluster's policies is kept in the namespace, and counts for
// those who open sandboxes there, until the policy is changed.
func TestVerdictIsKept(t *testing.T) {
	d := deployOverlay(t, "deploy/base")
	client := d.place
	client.Kubeconfig = d.accountKubeconfig(t, "llmsandbox") // no right is needed beyond the role's
	// undecided is another process's backend, which goes by what doctor saw.
	undecided := func() *kubernetes.Backend {
		return client.newBackend(t, func(o *kubernetes.Options) { o.NetworkPolicyEnforced = false })
	}
	// open opens a sandbox with rules for its network, which only hold where policies do.
	open := func(bestEffort bool) (*llmsandbox.Sandbox, error) {
		o := client.sandbox(t, undecided())
		o.BestEffort, o.Network = bestEffort, llmsandbox.Network{Mode: llmsandbox.NetworkAllow, Allow: []string{"example.com"}}
		return llmsandbox.Open(testfaults.Context(t), &o)
	}
	wantNetwork := func(enforced bool, says string) {
		t.Helper()
		if !enforced {
			if sb, err := open(false); !errors.Is(err, llmsandbox.ErrNotEnforced) || !strings.Contains(err.Error(), says) {
				t.Errorf("rules that do not hold: %v, want ErrNotEnforced and %q", err, says)
				if err == nil {
					testfaults.Close(t, sb)
				}
			}
		}
		sb, err := open(!enforced)
		if err != nil {
			t.Fatal(err)
		}
		defer testfaults.Close(t, sb)
		other, err := llmsandbox.Attach(testfaults.Context(t), sb.ID(), &llmsandbox.AttachOptions{Backend: undecided()})
		if err != nil {
			t.Fatal(err)
		}
		defer testfaults.Close(t, other)
		for _, sb := range []*llmsandbox.Sandbox{sb, other} {
			if k, _ := sb.Capabilities().Get("network"); k.Enforced != enforced || !strings.Contains(k.Detail+k.Why, says) {
				t.Errorf("%+v, want %v and %q", k, enforced, says)
			}
		}
	}
	look := func(want diagnose.Verdict) diagnose.Result {
		t.Helper()
		c, err := access.Find(access.Options{Kubeconfig: client.Kubeconfig, Namespace: client.Namespace})
		if err != nil {
			t.Fatal(err)
		}
		r := diagnose.Network(testfaults.Context(t), c, diagnose.Probe{})
		if r.NotKept != "" || r.Verdict != want {
			t.Fatalf("%+v, want %s", r, want)
		}
		return r
	}

	wantNetwork(false, "is not known")
	t.Cleanup(func() { d.node.StartPolicies(t) })
	d.node.StopPolicies(t)
	look(diagnose.NotEnforced)
	wantNetwork(false, "a pod that is cut off was reached, and reached others")
	d.node.StartPolicies(t)
	wantNetwork(look(diagnose.Enforced).Holds(), "doctor saw it on") // not if the machine was so busy that it took long
	// Changed, and changed back.
	for _, types := range []string{`["Ingress"]`, `["Ingress","Egress"]`} {
		d.run(t, "-n", d.Namespace, "patch", "networkpolicy", isolation.Name, "--type=merge", "-p", `{"spec":{"policyTypes":`+types+`}}`)
	}
	wantNetwork(false, "is not known")
}
