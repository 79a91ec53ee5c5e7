package cluster

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"testing"
	"time"

	"github.com/llmsandbox/llmsandbox/internal/cli"
	"github.com/llmsandbox/llmsandbox/internal/kubernetes/podwatch"
)

func TestHint(t *testing.T) {
	var b cli.Cluster = Backend{}
	start := fmt.Errorf("open sandbox: %w", &podwatch.StartError{Reason: "Unschedulable", Message: "no room"})
	if got := b.Hint(start); got != "--wait-for-node 5m waits for a node that is started on demand" {
		t.Errorf("%q, want %q", got, "--wait-for-node 5m waits for a node that is started on demand")
	}
	if got := b.Hint(errors.New("no room")); got != "" {
		t.Errorf("%q, want empty", got)
	}
}

// No option is lost on the way to the backend.
func TestOptions(t *testing.T) {
	template := filepath.Join(t.TempDir(), "pod.yaml")
	if err := os.WriteFile(template, []byte("spec: {priorityClassName: low}"), 0o600); err != nil {
		t.Fatal(err)
	}
	o := cli.ClusterOptions{
		Kubeconfig: "/k", Context: "c", Namespace: "n", Pod: "p", Container: "pc", Template: template, RuntimeClass: "gvisor",
		AgentImage: "agent:1", PullPolicy: "Never", PullSecrets: []string{"s"}, ServiceAccount: "a", NodeSelector: map[string]string{"disk": "fast"},
		WaitForNode: time.Minute, StartTimeout: time.Second, NetworkPolicyEnforced: true, StorageClass: "sc", VolumeAccess: "ReadWriteMany",
	}
	for v, i := reflect.ValueOf(o), 0; i < v.NumField(); i++ {
		if v.Field(i).IsZero() {
			t.Errorf("%s is not tried, want v.Field(i).IsZero() = false", v.Type().Field(i).Name)
		}
	}
	got, err := optionsOf(o)
	if err != nil {
		t.Fatal(err)
	}
	if got.Template == nil || got.Template.Spec.PriorityClassName != "low" {
		t.Errorf("the template: %+v, want Template not nil, PriorityClassName = \"low\"", got.Template)
	}
	back := cli.ClusterOptions{
		Kubeconfig: got.Kubeconfig, Context: got.Context, Namespace: got.Namespace, Pod: got.Pod, Container: got.Container, Template: template,
		RuntimeClass: got.RuntimeClass, AgentImage: got.AgentImage, PullPolicy: string(got.PullPolicy), PullSecrets: got.PullSecrets,
		ServiceAccount: got.ServiceAccount, NodeSelector: got.NodeSelector, WaitForNode: got.WaitForNode, StartTimeout: got.StartTimeout,
		NetworkPolicyEnforced: got.NetworkPolicyEnforced, StorageClass: got.StorageClass, VolumeAccess: string(got.VolumeAccess),
	}
	if !reflect.DeepEqual(back, o) {
		t.Errorf("%+v, want %+v", back, o)
	}
}
