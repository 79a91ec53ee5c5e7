package e2e

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/llmsandbox/llmsandbox"
	"github.com/llmsandbox/llmsandbox/backend"
	"github.com/llmsandbox/llmsandbox/internal/testcommand"
)

// supervised has the command own the sandboxes of a test, in a state directory of their own.
func supervised(t *testing.T) *llmsandbox.Supervisor {
	t.Helper()
	commands, err := testcommand.In(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	return &llmsandbox.Supervisor{Command: []string{filepath.Join(commands, "llmsandbox"), "supervise"}}
}

const fetch = `
import os, sys, urllib.error, urllib.request
os.environ["no_proxy"] = os.environ["NO_PROXY"] = ""
request = urllib.request.Request(sys.argv[1], headers={"Authorization": "Bearer " + os.environ.get("TOKEN", "")})
try:
    r = urllib.request.urlopen(request)
except urllib.error.HTTPError as e:
    r = e
print(r.status, r.read().decode().split(":")[0].strip())
`

// TestSupervisor: a sandbox whose supervisor owns it outlives its handle, and the next one has all
// of it: network, secrets, what runs reached, kernels, processes, its first state.
func TestSupervisor(t *testing.T) {
	host := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprintln(w, r.Header.Get("Authorization") == "Bearer the-value-of-the-secret")
	}))
	defer host.Close()
	address := host.Listener.Addr().String()
	ctx := t.Context()
	o := llmsandbox.Options{
		Supervisor: supervised(t), Resettable: true, Lifetime: time.Hour, BestEffort: true,
		Network: llmsandbox.Network{Mode: llmsandbox.NetworkAllow, Allow: []string{address}},
		Secrets: []llmsandbox.Secret{{Name: "TOKEN", Value: "the-value-of-the-secret", Hosts: []string{address}}},
	}
	first, err := llmsandbox.Open(ctx, &o)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = first.Destroy(ctx) }() // it may be destroyed by then
	if err := first.WriteFile(ctx, "fetch.py", []byte(fetch)); err != nil {
		t.Fatal(err)
	}
	k, err := first.Kernel(ctx, "", &llmsandbox.KernelOptions{Plain: true})
	if err != nil {
		t.Fatal(err)
	}
	if c, err := k.Run(ctx, "x = 5", nil); err != nil || !c.OK() {
		t.Fatalf("cell: %+v, %v, want no error, OK", c, err)
	}
	if err := k.Detach(ctx); err != nil {
		t.Fatal(err)
	}
	p, err := first.Start(ctx, []string{"sh", "-c", "echo begun; read line; echo $line"}, &llmsandbox.ExecOptions{Stdin: neverReads{ctx.Done()}})
	if err != nil {
		t.Fatal(err)
	}
	p.Detach()
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}

	sb, err := llmsandbox.Attach(ctx, first.ID(), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := sb.Close(); err != nil {
			t.Error(err)
		}
	}()
	get := func(t *testing.T, want string, allowed bool) {
		t.Helper()
		res, err := sb.Exec(ctx, []string{"python3", "fetch.py", "http://" + address + "/"}, nil)
		if err != nil || !strings.HasPrefix(res.Stdout, want) {
			t.Fatalf("%+v, %v; want stdout %q", res, err, want)
		}
		if len(res.Network) != 1 || res.Network[0].Allowed != allowed {
			t.Errorf("the run's attempts %+v; want one, allowed %v", res.Network, allowed)
		}
	}
	gone := llmsandbox.Traffic{}
	moved := func(t *testing.T) {
		t.Helper()
		now, err := sb.Traffic(ctx)
		if err != nil || now.Sent <= gone.Sent || now.Received <= gone.Received {
			t.Errorf("traffic %+v, %v, want no error, and more both ways than %+v", now, err, gone)
		}
		gone = now
	}
	t.Run("network", func(t *testing.T) {
		if n, err := sb.Network(ctx); err != nil || n.Mode != llmsandbox.NetworkAllow || !slices.Equal(n.Allow, []string{address}) {
			t.Errorf("network %+v, %v; want allow %s", n, err, address)
		}
		get(t, "200 true", true)
		moved(t)
		if err := sb.SetNetwork(ctx, llmsandbox.Network{Mode: llmsandbox.NetworkAllow, Allow: []string{"good.example"}}); err != nil {
			t.Fatal(err)
		}
		get(t, "403", false)
		if err := sb.SetNetwork(ctx, llmsandbox.Network{Mode: llmsandbox.NetworkAllow, Allow: []string{"a b"}}); !errors.Is(err, llmsandbox.ErrInvalid) {
			t.Errorf("a rule that is none: %v, want ErrInvalid", err)
		}
		if err := sb.SetNetwork(ctx, llmsandbox.Network{Mode: llmsandbox.NetworkFull, Hook: func(llmsandbox.NetworkAttempt) {}}); !errors.Is(err, llmsandbox.ErrInvalid) {
			t.Errorf("a hook: %v, want ErrInvalid", err)
		}
	})
	t.Run("kernel", func(t *testing.T) {
		again, err := sb.AttachKernel(ctx, k.Info().ID, nil, nil)
		if err != nil {
			t.Fatal(err)
		}
		if c, err := again.Run(ctx, "x", nil); err != nil || c.Value["text/plain"] != "5" {
			t.Errorf("cell: %+v, %v; want the value 5", c, err)
		}
		if err := again.Close(); err != nil {
			t.Error(err)
		}
	})
	t.Run("process", func(t *testing.T) {
		again, err := sb.AttachProcess(ctx, p.ID(), &llmsandbox.AttachOutput{Stdin: strings.NewReader("line\n")})
		if err != nil {
			t.Fatal(err)
		}
		if res, err := again.Wait(ctx); err != nil || !strings.HasSuffix(res.Stdout, "line\n") {
			t.Errorf("%+v, %v; want stdout to end with line", res, err)
		}
	})
	t.Run("reset", func(t *testing.T) {
		if err := sb.Reset(ctx); err != nil {
			t.Fatal(err)
		}
		if _, err := sb.Stat(ctx, "fetch.py"); err == nil {
			t.Error("a file is there after the reset, want none")
		}
		if n, err := sb.Network(ctx); err != nil || !slices.Equal(n.Allow, []string{address}) {
			t.Errorf("network after the reset %+v, %v; want that of Open", n, err)
		}
		if err := sb.WriteFile(ctx, "fetch.py", []byte(fetch)); err != nil {
			t.Fatal(err)
		}
		get(t, "200 true", true)
		moved(t)
	})
	t.Run("destroy", func(t *testing.T) {
		if err := sb.Destroy(ctx); err != nil {
			t.Fatal(err)
		}
		if _, err := llmsandbox.Attach(ctx, first.ID(), nil); !errors.Is(err, llmsandbox.ErrNotFound) {
			t.Errorf("attach: %v, want ErrNotFound", err)
		}
	})
}

// neverReads is an input that stays open.
type neverReads struct{ done <-chan struct{} }

func (r neverReads) Read([]byte) (int, error) { <-r.done; return 0, errors.New("done") }

// TestSupervisorNotAttached: where the handle that Open returns cannot be had, the sandbox does not
// stay.
func TestSupervisorNotAttached(t *testing.T) {
	o := llmsandbox.Options{ID: "never-attached", Supervisor: supervised(t), BestEffort: true, Backend: notAttached{}}
	sb, err := llmsandbox.Open(t.Context(), &o)
	if sb != nil || !errors.Is(err, errNotAttached) {
		t.Errorf("got %v, %v; want the error of Attach", sb, err)
	}
	if sb, err := llmsandbox.Attach(t.Context(), o.ID, nil); !errors.Is(err, llmsandbox.ErrNotFound) {
		t.Errorf("attach: %v, %v; want ErrNotFound", sb, err)
	}
}

var errNotAttached = errors.New("no attachment")

// notAttached is a backend to which no handle can be attached; nothing else of it is used.
type notAttached struct{ backend.Backend }

func (notAttached) Attach(context.Context, string) (backend.Machine, error) {
	return nil, errNotAttached
}

// TestSupervisorFails: an error in the supervisor means what it does here.
func TestSupervisorFails(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*llmsandbox.Options)
		want   error
	}{
		"image":    {func(o *llmsandbox.Options) { o.Image = "/does/not/exist.tar" }, llmsandbox.ErrImageNotFound},
		"limit":    {func(o *llmsandbox.Options) { o.Limits.Memory = 1 }, llmsandbox.ErrInvalid},
		"hook":     {func(o *llmsandbox.Options) { o.Network.Hook = func(llmsandbox.NetworkAttempt) {} }, llmsandbox.ErrInvalid},
		"none":     {func(o *llmsandbox.Options) { o.Supervisor = &llmsandbox.Supervisor{} }, llmsandbox.ErrInvalid},
		"no such":  {func(o *llmsandbox.Options) { o.Supervisor.Command = []string{"/does/not/exist"} }, os.ErrNotExist},
		"other":    {func(o *llmsandbox.Options) { o.Supervisor.Command = []string{"/bin/true"} }, nil},
		"language": {func(o *llmsandbox.Options) { o.Language = "cobol" }, llmsandbox.ErrUnknownLanguage},
	} {
		t.Run(name, func(t *testing.T) {
			o := llmsandbox.Options{Supervisor: supervised(t), BestEffort: true}
			c.change(&o)
			sb, err := llmsandbox.Open(t.Context(), &o)
			if sb != nil || err == nil || c.want != nil && !errors.Is(err, c.want) {
				t.Errorf("got %v, %v; want %v", sb, err, c.want)
			}
		})
	}
}
