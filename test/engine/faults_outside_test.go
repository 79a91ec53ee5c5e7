//go:build linux

package engine

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/moby/moby/client"

	"github.com/llmsandbox/llmsandbox"
	"github.com/llmsandbox/llmsandbox/backend/engine"
	"github.com/llmsandbox/llmsandbox/internal/engine/containers"
	"github.com/llmsandbox/llmsandbox/internal/testengine"
	"github.com/llmsandbox/llmsandbox/internal/testfaults"
	"github.com/llmsandbox/llmsandbox/internal/testimage"
)

// interventions are what somebody else may do to a container for good.
var interventions = []struct {
	name string
	do   func(context.Context, *client.Client, string) error
}{
	{"killed", func(ctx context.Context, c *client.Client, id string) error {
		_, err := c.ContainerKill(ctx, id, client.ContainerKillOptions{Signal: "KILL"})
		if containers.Absent(err) {
			return nil // Podman waits for its end, and may find it removed
		}
		return err
	}},
	{"stopped", func(ctx context.Context, c *client.Client, id string) error {
		_, err := c.ContainerStop(ctx, id, client.ContainerStopOptions{})
		return err
	}},
	{"removed", func(ctx context.Context, c *client.Client, id string) error {
		_, err := c.ContainerRemove(ctx, id, client.ContainerRemoveOptions{Force: true})
		return err
	}},
}

// onFaultsEngines runs a test on each engine, with faultsImage.
func onFaultsEngines(t *testing.T, f func(*testing.T, *engine.Backend, *client.Client)) {
	path := testimage.Save(t, faultsImage, testimage.Busybox(t, nil))
	onEachEngine(t, func(t *testing.T, e *testengine.Engine) {
		e.Load(t, path)
		f(t, newBackend(t, e, engine.Options{}), newClient(t, e))
	})
}

// A container that ends by another's hand is lost to the program in it, and to who asks
// next; and nothing of it is left.
func TestFaultsContainerEnded(t *testing.T) {
	onFaultsEngines(t, func(t *testing.T, b *engine.Backend, c *client.Client) {
		for _, i := range interventions {
			t.Run(i.name, func(t *testing.T) {
				leakFree(t)
				busy, idle := openFaults(t, b), openFaults(t, b)
				testfaults.Works(t, idle)
				_, ended := running(t, busy, 0)
				for _, sb := range []*llmsandbox.Sandbox{busy, idle} {
					if err := i.do(testfaults.Context(t), c, "llmsandbox-"+sb.ID()); err != nil {
						t.Fatal(err)
					}
				}
				(<-ended).WantLost(t)
				for _, sb := range []*llmsandbox.Sandbox{busy, idle} {
					testfaults.AwaitDone(t, sb)
					if _, err := sb.Shell(testfaults.Context(t), "true", nil); !errors.Is(err, llmsandbox.ErrClosed) || !strings.Contains(err.Error(), "open a new one") {
						t.Errorf("the next run: %v, want llmsandbox.ErrClosed, an error containing \"open a new one\"", err)
					}
					if err := sb.Close(); err != nil {
						t.Errorf("close: %v", err)
					}
				}
				wantNothing(t, b, c)
			})
		}
	})
}

// A paused container answers nobody. That its program ran into its timeout is not claimed,
// since nobody saw it.
func TestFaultsContainerPaused(t *testing.T) {
	onFaultsEngines(t, func(t *testing.T, b *engine.Backend, c *client.Client) {
		leakFree(t)
		sb, rested := openFaults(t, b), openFaults(t, b)
		name := "llmsandbox-" + sb.ID()
		_, ended := running(t, sb, time.Second)
		if _, err := c.ContainerPause(testfaults.Context(t), name, client.ContainerPauseOptions{}); err != nil {
			if strings.Contains(err.Error(), "cgroup") {
				t.Skipf("this engine cannot pause here: %v", err)
			}
			t.Fatal(err)
		}
		o := <-ended
		o.WantLost(t)
		if o.Err == nil || !strings.Contains(o.Err.Error(), "does not answer") {
			t.Errorf("the run of a paused container: %v, want an error containing \"does not answer\"", o.Err)
		}
		if _, err := c.ContainerUnpause(testfaults.Context(t), name, client.ContainerUnpauseOptions{}); err != nil {
			t.Fatal(err)
		}
		testfaults.Works(t, sb)
		// Half a minute that nobody used this one for.
		testfaults.Works(t, rested)
		for _, sb := range []*llmsandbox.Sandbox{sb, rested} {
			if err := sb.Close(); err != nil {
				t.Error(err)
			}
		}
		wantNothing(t, b, c)
	})
}
