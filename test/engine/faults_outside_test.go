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

// interventions are the ways in which others can end a container.
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

// When others end a container, the run in it is lost, the next call fails, and nothing is
// left.
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
				testfaults.WantEnded(t, busy, idle, ended)
				wantNothing(t, b, c)
			})
		}
	})
}

// A paused container does not answer. Its run is not said to have timed out, since that was
// not observed.
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
		// Who attaches now hears it from the engine, and does not wait for an answer.
		other, err := llmsandbox.Attach(testfaults.Context(t), sb.ID(), &llmsandbox.AttachOptions{Backend: b})
		if err != nil {
			t.Fatal(err)
		}
		defer other.Close()
		if _, err := other.Shell(testfaults.Context(t), "true", nil); !errors.Is(err, llmsandbox.ErrUnsupported) || !strings.Contains(err.Error(), "unpause") {
			t.Errorf("a run of who attaches to a paused container: %v, want ErrUnsupported and what to do", err)
		}
		if _, err := c.ContainerUnpause(testfaults.Context(t), name, client.ContainerUnpauseOptions{}); err != nil {
			t.Fatal(err)
		}
		testfaults.Works(t, sb)
		testfaults.Works(t, other) // it had not ended
		// This one was not used for half a minute.
		testfaults.Works(t, rested)
		testfaults.Close(t, other, sb, rested)
		wantNothing(t, b, c)
	})
}
