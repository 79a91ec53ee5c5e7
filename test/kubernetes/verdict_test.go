//go:build linux

package kubernetes

import (
	"strings"
	"testing"

	"github.com/llmsandbox/llmsandbox"
	"github.com/llmsandbox/llmsandbox/backend/kubernetes"
	"github.com/llmsandbox/llmsandbox/backend/kubernetes/diagnose"
	"github.com/llmsandbox/llmsandbox/backend/kubernetes/isolation"
)

// What doctor has seen of a cluster's policies is kept in the namespace, and counts for
// those who open sandboxes there, until somebody touches the policy.
func TestVerdictIsKept(t *testing.T) {
	d := deployOverlay(t, "deploy/base")
	client := d.place
	client.Kubeconfig = d.accountKubeconfig(t, "llmsandbox") // no right is needed beyond the role's
	network := func(says string) bool {
		t.Helper()
		b := client.newBackend(t, func(o *kubernetes.Options) { o.NetworkPolicyEnforced = false })
		sb, err := llmsandbox.Open(faultsContext(t), client.sandbox(t, b))
		if err != nil {
			t.Fatal(err)
		}
		defer closes(t, sb)
		k, _ := sb.Capabilities().Get("network")
		if !strings.Contains(k.Detail+k.Why, says) {
			t.Errorf("%+v, want %q", k, says)
		}
		return k.Enforced
	}
	if network("is not known") {
		t.Error("it is held to be enforced before anybody has looked")
	}
	doctor := client.newBackend(t, nil)
	r := diagnose.Network(faultsContext(t), doctor.Cluster(), diagnose.Probe{})
	if r.NotKept != "" || r.Verdict == diagnose.Unknown {
		t.Fatalf("%+v", r)
	}
	if enforced := network("doctor saw it on"); enforced != r.Holds() {
		t.Errorf("enforced: %v after %+v", enforced, r)
	}
	// Changed, and changed back.
	for _, types := range []string{`["Ingress"]`, `["Ingress","Egress"]`} {
		d.run(t, "-n", d.Namespace, "patch", "networkpolicy", isolation.Name, "--type=merge", "-p", `{"spec":{"policyTypes":`+types+`}}`)
	}
	if network("is not known") {
		t.Error("a verdict on a policy that was changed since is believed")
	}
}
