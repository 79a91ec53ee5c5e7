//go:build linux

package kubernetes

import (
	"context"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/llmsandbox/llmsandbox"
	"github.com/llmsandbox/llmsandbox/internal/testfaults"
)

// interventions are the ways in which others can end a pod, and what the error of a run then
// says of it.
var interventions = []struct {
	name string
	do   func(context.Context, place, string) error
	why  []string
}{
	{"deleted", func(ctx context.Context, p place, id string) error {
		return p.client.CoreV1().Pods(p.Namespace).Delete(ctx, podName(id), metav1.DeleteOptions{})
	}, []string{"deleted"}},
	{"deleted at once", func(ctx context.Context, p place, id string) error {
		now := int64(0)
		return p.client.CoreV1().Pods(p.Namespace).Delete(ctx, podName(id), metav1.DeleteOptions{GracePeriodSeconds: &now})
	}, []string{"deleted"}},
	{"deleted with time", func(ctx context.Context, p place, id string) error {
		grace := int64(2)
		return p.client.CoreV1().Pods(p.Namespace).Delete(ctx, podName(id), metav1.DeleteOptions{GracePeriodSeconds: &grace})
	}, []string{"deleted"}}, // no signal ends the agent: the program goes on until then
	{"evicted", func(ctx context.Context, p place, id string) error {
		return p.client.CoreV1().Pods(p.Namespace).EvictV1(ctx, &policyv1.Eviction{ObjectMeta: metav1.ObjectMeta{Name: podName(id), Namespace: p.Namespace}})
	}, []string{"evict", "deleted"}},
	{"killed", func(ctx context.Context, p place, id string) error {
		pod, err := p.client.CoreV1().Pods(p.Namespace).Get(ctx, podName(id), metav1.GetOptions{})
		if err != nil {
			return err
		}
		return p.kill(ctx, pod)
	}, []string{"SIGKILL", "killed", "137"}},
}

// When others end a pod, the run in it is lost, with the reason, the next call fails, and
// nothing is left.
func TestFaultsPodEnded(t *testing.T) {
	beside(t)
	p := newPlace(t)
	b := p.newBackend(t, nil)
	for _, i := range interventions {
		t.Run(i.name, func(t *testing.T) {
			busy, idle := p.open(t, b), p.open(t, b)
			testfaults.Works(t, idle)
			_, ended := running(t, busy)
			for _, sb := range []*llmsandbox.Sandbox{busy, idle} {
				if err := i.do(testfaults.Context(t), p, sb.ID()); err != nil {
					t.Fatal(err)
				}
			}
			testfaults.WantEnded(t, busy, idle, ended, i.why...)
			p.wantNothing(t, b)
		})
	}
}

// A container whose first process the kernel kills for memory takes the program along, and
// the cluster says why.
func TestFaultsOutOfMemory(t *testing.T) {
	beside(t)
	p := newPlace(t)
	b := p.newBackend(t, nil)
	o := p.sandbox(t, b)
	o.Limits.Memory, o.Limits.Disk = 128<<20, 512<<20
	sb, err := llmsandbox.Open(testfaults.Context(t), &o)
	if err != nil {
		t.Fatal(err)
	}
	defer sb.Close()
	testfaults.Works(t, sb)
	agent, err := agentOf(sb.ID())
	if err != nil || agent == 0 {
		t.Fatalf("the agent of %s cannot be seen: %d, %v, want no error, agent != 0", sb.ID(), agent, err)
	}
	// What is in files has no process of its own: the kernel kills the largest there is.
	if err := os.WriteFile(fmt.Sprintf("/proc/%d/oom_score_adj", agent), []byte("1000"), 0); err != nil {
		t.Fatal(err)
	}
	res, err := sb.Shell(testfaults.Context(t), "head -c 300m /dev/zero >/sandbox/large", nil)
	if err != nil || res.Status != llmsandbox.StatusOutOfMemory || res.ExitCode != -1 || !strings.Contains(res.Reason, "128 MiB") {
		t.Errorf("got %+v, %v, want out_of_memory", res, err)
	}
	testfaults.AwaitDone(t, sb)
	testfaults.Close(t, sb)
	p.wantNothing(t, b)
}

// A sandbox whose time is over ends by itself, with what runs in it, and nothing is left.
func TestFaultsLifetime(t *testing.T) {
	beside(t)
	p := newPlace(t)
	b := p.newBackend(t, nil)
	o := p.sandbox(t, b)
	o.Lifetime = 20 * time.Second // its start is a part of that
	start := time.Now()
	sb, err := llmsandbox.Open(testfaults.Context(t), &o)
	if err != nil {
		t.Fatal(err)
	}
	defer sb.Close()
	_, ended := running(t, sb)
	// The agent kills what runs, and may be gone before it was heard to.
	if end := <-ended; end.Err != nil || end.Res.Status != llmsandbox.StatusKilled || end.Res.ExitCode != -1 {
		end.WantLost(t, "ended")
	}
	if d := time.Since(start); d < o.Lifetime-time.Second || d > o.Lifetime+20*time.Second {
		t.Errorf("it ended after %v, want %v", d, o.Lifetime)
	}
	testfaults.AwaitDone(t, sb)
	testfaults.Close(t, sb)
	p.wantNothing(t, b)
}
