package cli

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/llmsandbox/llmsandbox"
	"github.com/llmsandbox/llmsandbox/backend"
	"github.com/llmsandbox/llmsandbox/mcp"
)

// A slowBackend creates a machine when it is told how that ends.
type slowBackend struct {
	backend.Backend
	end chan error
}

func (slowBackend) Name() string { return "slow" }

func (slowBackend) Layers() (backend.Layers, error) { return nil, backend.ErrUnsupported }

func (b slowBackend) Create(ctx context.Context, _ backend.Spec) (backend.Machine, error) {
	select {
	case err := <-b.end:
		return nil, err
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// A client waits no longer than mcpPatience for a sandbox that takes its time.
func TestClientsAreServedWhileSandboxesAreTried(t *testing.T) {
	broken := errors.New("the image is broken")
	for name, c := range map[string]struct {
		soon, late error
		want       error
		log        string
	}{
		"fails soon":  {soon: broken, want: broken},
		"fails late":  {late: broken, log: "the image is broken"},
		"never comes": {log: "still being prepared"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := slowBackend{end: make(chan error, 1)}
				server, err := mcp.New(&mcp.Config{Warm: -1, Sandbox: llmsandbox.Options{Backend: b}})
				if err != nil {
					t.Fatal(err)
				}
				if c.soon != nil {
					b.end <- c.soon
				}
				var log bytes.Buffer
				ctx, cancel := context.WithCancel(t.Context())
				if err := checkFirst(ctx, server, &place{}, slog.New(slog.NewTextHandler(&log, nil))); !errors.Is(err, c.want) {
					t.Errorf("%v, want %v", err, c.want)
				}
				if c.late != nil {
					b.end <- c.late
					synctest.Wait()
				}
				cancel()
				if err := server.Close(context.Background()); err != nil {
					t.Error(err)
				}
				synctest.Wait()
				if !strings.Contains(log.String(), c.log) || c.late == nil && strings.Contains(log.String(), "calls will fail") {
					t.Errorf("log %q, want %q in it", log.String(), c.log)
				}
			})
		})
	}
}
