package service

import (
	"context"
	"errors"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/llmsandbox/llmsandbox"
	"github.com/llmsandbox/llmsandbox/backend/local"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// TestBound: a request gets what it asks for, the operator's value where it asks for nothing, and never more than that.
func TestBound(t *testing.T) {
	cfg, err := (Config{
		Sandbox: llmsandbox.Options{Image: "own", Limits: llmsandbox.Limits{Memory: 1000, CPUs: 2, Disk: llmsandbox.Unlimited, Timeout: 10 * time.Second}},
		Images:  []string{"python:3*", "node:22"}, MaxLifetime: time.Hour, DefaultLifetime: time.Minute,
	}).resolve()
	if err != nil {
		t.Fatal(err)
	}
	o := llmsandbox.Options{}
	if err := cfg.bound(&o); err != nil || o.Limits.Memory != 1000 || o.Limits.CPUs != 2 || o.Limits.PIDs != 128 || o.Limits.Timeout != 10*time.Second || o.Lifetime != time.Minute || o.Image != "own" {
		t.Errorf("%+v, %v: want the operator's values", o, err)
	}
	for name, ask := range map[string]func(*llmsandbox.Options){
		"memory": func(o *llmsandbox.Options) { o.Limits.Memory = 999 }, "disk": func(o *llmsandbox.Options) { o.Limits.Disk = 1 << 50 },
		"unlimited disk": func(o *llmsandbox.Options) { o.Limits.Disk = llmsandbox.Unlimited }, "image": func(o *llmsandbox.Options) { o.Image = "python:3.13-slim" },
		"lifetime": func(o *llmsandbox.Options) { o.Lifetime = time.Hour }, "timeout": func(o *llmsandbox.Options) { o.Limits.Timeout = time.Second },
		"no network": func(o *llmsandbox.Options) { o.Network.Mode = llmsandbox.NetworkNone },
	} {
		o := llmsandbox.Options{}
		ask(&o)
		if err := cfg.bound(&o); err != nil {
			t.Errorf("%s: %v, want what was asked for", name, err)
		}
	}
	for name, ask := range map[string]func(*llmsandbox.Options){
		"limits.memory_bytes": func(o *llmsandbox.Options) { o.Limits.Memory = 1001 }, "limits.cpus": func(o *llmsandbox.Options) { o.Limits.CPUs = 2.01 },
		"limits.pids": func(o *llmsandbox.Options) { o.Limits.PIDs = llmsandbox.Unlimited }, "limits.timeout_seconds": func(o *llmsandbox.Options) { o.Limits.Timeout = 11 * time.Second },
		"limits.output_bytes": func(o *llmsandbox.Options) { o.Limits.Output = 1 << 40 }, "lifetime_seconds": func(o *llmsandbox.Options) { o.Lifetime = llmsandbox.Unlimited },
		"image": func(o *llmsandbox.Options) { o.Image = "python:2" }, "network": func(o *llmsandbox.Options) { o.Network.Mode = llmsandbox.NetworkFull },
	} {
		o := llmsandbox.Options{}
		ask(&o)
		if err := cfg.bound(&o); !errors.Is(err, ErrNotAllowed) || !strings.HasPrefix(err.Error(), name) {
			t.Errorf("%s: %v, want ErrNotAllowed that begins with its name", name, err)
		}
	}
}

// TestBoundNetwork: rules are the operator's own, or of a full network, names.
func TestBoundNetwork(t *testing.T) {
	const allow, full = llmsandbox.NetworkAllow, llmsandbox.NetworkFull
	hosts := llmsandbox.Network{Mode: allow, Allow: []string{"example.org:443", "10.0.0.1"}}
	for _, c := range []struct {
		most llmsandbox.Network
		mode llmsandbox.NetworkMode
		rule string
		ok   bool
	}{
		{llmsandbox.Network{}, allow, "example.org", false}, {llmsandbox.Network{}, full, "", false}, {hosts, allow, "example.org:443", true}, {hosts, allow, "10.0.0.1", true},
		{hosts, allow, "example.org", false}, {hosts, allow, "*.org", false}, {hosts, full, "", false}, {llmsandbox.Network{Mode: full}, full, "", true},
		{llmsandbox.Network{Mode: full}, allow, "example.org:443", true}, {llmsandbox.Network{Mode: full}, allow, "*.example.org", true},
		{llmsandbox.Network{Mode: full}, allow, "10.0.0.1", false}, {llmsandbox.Network{Mode: full}, full, "10.0.0.0/8", false}, {llmsandbox.Network{Mode: full}, allow, "169.254.169.254:80", false},
		{llmsandbox.Network{Mode: full}, allow, "[::1]:80", false}, {llmsandbox.Network{Mode: full}, allow, "::1", false}, {llmsandbox.Network{Mode: full}, allow, "0x7f.1", false},
		{llmsandbox.Network{Mode: full}, allow, llmsandbox.PackageHosts, false}, {llmsandbox.Network{Mode: full}, allow, "abcd::", false}, {llmsandbox.Network{Mode: full, Allow: []string{"10.0.0.1"}}, allow, "10.0.0.1", true},
	} {
		n := llmsandbox.Network{Mode: c.mode}
		if c.rule != "" {
			n.Allow = []string{c.rule}
		}
		if err := (&Config{Sandbox: llmsandbox.Options{Network: c.most}}).boundNetwork(&n); (err == nil) != c.ok || err != nil && !errors.Is(err, ErrNotAllowed) {
			t.Errorf("of %v, %s %s: %v, want it allowed: %t", c.most, c.mode, c.rule, err, c.ok)
		}
	}
}

// TestResolve refuses configurations that make no sense.
func TestResolve(t *testing.T) {
	for name, c := range map[string]Config{
		"language": {Sandbox: llmsandbox.Options{Language: "python"}}, "lifetime": {Sandbox: llmsandbox.Options{Lifetime: 1}},
		"negative": {MaxRuns: -1}, "template": {Sandbox: llmsandbox.Options{Template: "none"}}, "warm": {WarmLanguages: []string{"cobol"}},
	} {
		if s, err := New(&c); err == nil {
			t.Errorf("%s: no error, want one", name)
			_ = s.Close(t.Context())
		}
	}
}

// TestManyAtOnce: sandboxes that are asked for at the same time are at most as many as there may be, and each is the same for all who get it.
func TestManyAtOnce(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("the local backend needs Linux")
	}
	s, err := New(&Config{Sandbox: llmsandbox.Options{BestEffort: true, Backend: local.New(&local.Options{StateDir: t.TempDir()})}, Warm: -1, MaxSandboxes: 3})
	if err != nil {
		t.Fatal(err)
	}
	var all sync.WaitGroup
	var mu sync.Mutex
	made, refused := map[string]*llmsandbox.Sandbox{}, 0
	for range 8 {
		all.Go(func() {
			sb, err := s.Create(t.Context(), "a", llmsandbox.Options{Language: "bash"})
			mu.Lock()
			defer mu.Unlock()
			switch {
			case err == nil:
				made[sb.ID()] = sb
			case errors.Is(err, ErrQuota):
				refused++
			default:
				t.Error(err)
			}
		})
	}
	all.Wait()
	if len(made) > 3 || len(made)+refused != 8 {
		t.Errorf("%d made and %d refused, want at most 3, and all others refused", len(made), refused)
	}
	for id, sb := range made {
		if got, err := s.Get(t.Context(), "a", id); got != sb || err != nil {
			t.Errorf("%p, %v: want %p", got, err, sb)
		}
		if _, err := s.Get(t.Context(), "b", id); !errors.Is(err, llmsandbox.ErrNotFound) {
			t.Errorf("for another project: %v, want ErrNotFound", err)
		}
		if err := s.Remove(t.Context(), "a", id); err != nil {
			t.Error(err)
		}
	}
	if err := s.Close(context.WithoutCancel(t.Context())); err != nil {
		t.Error(err)
	}
	if _, err := s.Create(t.Context(), "a", llmsandbox.Options{Language: "bash"}); !errors.Is(err, ErrClosed) {
		t.Errorf("after Close: %v, want ErrClosed", err)
	}
}

// TestKeepOnce: of two requests that attach to a sandbox at the same time, both have the handle of the first, and Close waits for no other.
func TestKeepOnce(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("the local backend needs Linux")
	}
	cfg := &Config{Sandbox: llmsandbox.Options{BestEffort: true, Backend: local.New(&local.Options{StateDir: t.TempDir()})}, Warm: -1}
	owner, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	made, err := owner.Create(t.Context(), "a", llmsandbox.Options{Language: "bash"})
	if err != nil {
		t.Fatal(err)
	}
	other, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	var handles [2]*handle
	for i := range handles {
		sb, err := other.attach(t.Context(), "a", made.ID())
		if err != nil {
			t.Fatal(err)
		}
		if handles[i], err = other.keep(sb, "a"); err != nil {
			t.Fatal(err)
		}
		if i == 1 {
			if err := sb.Close(); err != nil {
				t.Error(err)
			}
		}
	}
	if handles[0] != handles[1] {
		t.Errorf("%p and %p, want one handle", handles[0], handles[1])
	}
	if err := errors.Join(other.Close(context.WithoutCancel(t.Context())), owner.Remove(t.Context(), "a", made.ID()), owner.Close(context.WithoutCancel(t.Context()))); err != nil {
		t.Error(err)
	}
}
