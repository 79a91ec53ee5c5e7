package podwatch

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestEnded(t *testing.T) {
	at := metav1.NewTime(time.Unix(1, 0))
	container := func(p *corev1.Pod) *corev1.ContainerStatus { return &p.Status.ContainerStatuses[0] }
	for _, c := range []struct {
		name, state string
		change      func(*corev1.Pod)
		want        string // "" for not ended
		oom         bool
		exactly     bool
	}{
		{name: "runs", state: "running"},
		{name: "initialises", state: "init-running"},
		{name: "no node", state: "no-node"},
		{name: "out of memory", state: "oom", want: "the container was killed for memory (OOMKilled)", oom: true},
		{name: "out of memory in gVisor", state: "oom", change: func(p *corev1.Pod) { container(p).State.Terminated.ExitCode = 128 },
			want: "killed for memory", oom: true},
		{name: "lost a process to memory, then ended", state: "oom", change: func(p *corev1.Pod) { container(p).State.Terminated.ExitCode = 0 },
			want: "the container ended with exit code 0"},
		{name: "evicted", state: "evicted", want: "the cluster ended the pod: Evicted: Usage of EmptyDir"},
		{name: "deadline", state: "deadline", want: "DeadlineExceeded"},
		{name: "code", state: "exits", want: "the container ended with exit code 7"},
		{name: "words of code", state: "exits", change: func(p *corev1.Pod) { container(p).State.Terminated.Message = "killed for memory" }, want: "the container ended with exit code 7", exactly: true},
		{name: "done", state: "succeeds", want: "the container ended with exit code 0"},
		{name: "not started", state: "bad-command", want: "the container could not be started: StartError: failed to create containerd task"},
		{name: "init", state: "init-fails", want: "the init container agent ended with exit code 3"},
		{name: "deleted, its container stopped", state: "exits", change: func(p *corev1.Pod) { p.DeletionTimestamp = &at }, want: "the pod was deleted"},
		{name: "being deleted", state: "running", change: func(p *corev1.Pod) { p.DeletionTimestamp = &at }},
		{name: "preempted", state: "exits", change: func(p *corev1.Pod) {
			p.DeletionTimestamp = &at
			p.Status.Conditions = append(p.Status.Conditions, corev1.PodCondition{
				Type: corev1.DisruptionTarget, Status: corev1.ConditionTrue, Reason: "PreemptionByScheduler", Message: "to make room"})
		}, want: "the pod was deleted: PreemptionByScheduler: to make room"},
		{name: "restarted", state: "running", change: func(p *corev1.Pod) {
			container(p).RestartCount = 1
			container(p).LastTerminationState.Terminated = &corev1.ContainerStateTerminated{Reason: reasonOOM, ExitCode: codeKilled}
		}, want: "the container was killed for memory (OOMKilled), and was started anew", oom: true},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := load(t, c.state).Pod
			if c.change != nil {
				c.change(p)
			}
			if got := ended(p, sandboxContainer, 0); !strings.Contains(got, c.want) || (got == "") != (c.want == "") || c.exactly && got != c.want {
				t.Errorf("%q; want %q", got, c.want)
			}
			if oomKilled(p, sandboxContainer) != c.oom {
				t.Errorf("killed for memory: %t; want %t", !c.oom, c.oom)
			}
		})
	}
}

func TestUnreachableReason(t *testing.T) {
	ready := func(status corev1.ConditionStatus) func(*corev1.Pod) {
		return func(p *corev1.Pod) {
			for i := range p.Status.Conditions {
				if p.Status.Conditions[i].Type == corev1.PodReady {
					p.Status.Conditions[i].Status = status
				}
			}
		}
	}
	for _, c := range []struct {
		name, state string
		change      func(*corev1.Pod)
		want        string
	}{
		{"none", "running", func(*corev1.Pod) {}, ""},
		{"starts", "init-running", func(*corev1.Pod) {}, ""},
		{"node is silent", "running", ready(corev1.ConditionFalse), "node node does not answer"},
		{"node is unknown", "running", ready(corev1.ConditionUnknown), "node node does not answer"},
		{"node is lost", "running", func(p *corev1.Pod) { p.Status.Reason = "NodeLost" }, "the cluster says of the pod: NodeLost"},
		{"is being deleted", "running", func(p *corev1.Pod) { p.DeletionTimestamp = &metav1.Time{} }, "the pod is being deleted"},
	} {
		p := load(t, c.state).Pod
		c.change(p)
		if got := obstacle(p, sandboxContainer); got != c.want {
			t.Errorf("%s: %q; want %q", c.name, got, c.want)
		}
	}
}
