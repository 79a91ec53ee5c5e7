//go:build linux

package engine

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/moby/moby/client"

	"github.com/llmsandbox/llmsandbox"
	"github.com/llmsandbox/llmsandbox/backend/engine"
	"github.com/llmsandbox/llmsandbox/internal/testfaults"
)

// agentVolumes are the names of an engine's volumes with agents.
func agentVolumes(t *testing.T, c *client.Client) []string {
	t.Helper()
	res, err := c.VolumeList(testfaults.Context(t), client.VolumeListOptions{Filters: make(client.Filters).Add("label", "llmsandbox.role=agent")})
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, v := range res.Items {
		names = append(names, v.Name)
	}
	return names
}

// wantAgent checks that an engine has one whole agent, and that a sandbox works with it.
func wantAgent(t *testing.T, b *engine.Backend, c *client.Client) {
	t.Helper()
	sb := openFaults(t, b)
	testfaults.Works(t, sb)
	names := agentVolumes(t, c)
	if slices.Sort(names); len(names) != 2 || !strings.HasPrefix(names[1], names[0]+"-") {
		t.Errorf("volumes %q: want the agent's mark and the agent's", names)
	}
	if err := sb.Close(); err != nil {
		t.Error(err)
	}
	wantNothing(t, b, c)
}

// Thirty sandboxes that are asked for at once, of an engine that has no agent yet, are all
// there and kept apart.
func TestFaultsThirtyAtOnce(t *testing.T) {
	leakFree(t)
	p := privateDocker(t)
	b, c := privateBackend(t, p, engine.Options{})
	var wg sync.WaitGroup
	for i := range 30 {
		wg.Go(func() {
			sb, err := llmsandbox.Open(testfaults.Context(t), &llmsandbox.Options{Backend: b, Image: faultsImage, BestEffort: true})
			if err != nil {
				t.Errorf("sandbox %d: %v", i, err)
				return
			}
			res, err := sb.Shell(testfaults.Context(t), fmt.Sprintf("echo %d >/sandbox/me; cat /sandbox/me", i), nil)
			if err != nil || res.Stdout != fmt.Sprintf("%d\n", i) {
				t.Errorf("sandbox %d: %v, %+v, want no error, res.Stdout = %q", i, err, res, fmt.Sprintf("%d\n", i))
			}
			if err := sb.Close(); err != nil {
				t.Errorf("sandbox %d: %v", i, err)
			}
		})
	}
	wg.Wait()
	wantAgent(t, b, c)
}
