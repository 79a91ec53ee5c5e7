package service

import (
	"context"
	"errors"
	"math"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/llmsandbox/llmsandbox"
	"github.com/llmsandbox/llmsandbox/backend"
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

func TestQuota(t *testing.T) {
	of := func(limits ...int64) (list []backend.Info) { // memory and disk of each
		for i := 0; i < len(limits); i += 2 {
			list = append(list, backend.Info{Limits: backend.Limits{Memory: limits[i], Disk: limits[i+1]}})
		}
		return list
	}
	for name, test := range map[string]struct {
		list []backend.Info
		want string
	}{
		"none":         {nil, ""},
		"all":          {of(60, 5, 40, 5), ""},
		"memory":       {of(60, 5, 41, 1), "limits.memory_bytes"},
		"disk":         {of(1, 5, 1, 6), "limits.disk_bytes"},
		"number":       {of(1, 1, 1, 1, 1, 1, 1, 1), "the project has 3 sandboxes"},
		"no limit":     {of(0, 1), "limits.memory_bytes"},
		"many bytes":   {of(math.MaxInt64, 1, math.MaxInt64, 1), "limits.memory_bytes"},
		"disk at last": {of(1, 0), "limits.disk_bytes"},
	} {
		err := (&Config{MaxSandboxes: 3, MaxMemory: 100, MaxDisk: 10}).quota(test.list)
		if errors.Is(err, ErrQuota) != (test.want != "") || err != nil && !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: %v, want one about %q", name, err, test.want)
		}
	}
	if err := (&Config{MaxSandboxes: 1}).quota(of(0, 0)); err != nil {
		t.Errorf("without bounds: %v, want no error", err)
	}
}

// TestAdmit: nothing is begun where too little memory is left, and all of it again once there is enough, or nobody knows.
func TestAdmit(t *testing.T) {
	left, total, unknown := int64(50<<20), int64(2<<30), error(nil)
	s, err := New(&Config{
		Sandbox: llmsandbox.Options{Backend: local.New(&local.Options{StateDir: t.TempDir()}), BestEffort: true}, Warm: -1,
		Memory: func() (int64, int64, error) { return left, total, unknown },
	})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := s.Close(context.Background()); err != nil {
			t.Error(err)
		}
	}()
	if sb, err := s.Create(t.Context(), "a", llmsandbox.Options{Language: "bash"}); !errors.Is(err, ErrBusy) {
		t.Errorf("got %v, %v, want no sandbox and ErrBusy", sb, err)
	}
	for _, c := range []struct {
		left, total int64
		unknown     error
		busy        bool
	}{
		{50 << 20, 2 << 30, nil, true}, {99 << 20, 2 << 30, nil, true}, {103 << 20, 2 << 30, nil, false}, {63 << 20, 1 << 30, nil, true}, {64 << 20, 1 << 30, nil, false},
		{0, 0, errors.New("no proc"), false},
	} {
		left, total, unknown = c.left, c.total, c.unknown
		for range 20 { // more than there are places: those who are told to come back have none
			leave, err := s.Enter(t.Context(), "a")
			if errors.Is(err, ErrBusy) != c.busy || !c.busy && err != nil {
				t.Errorf("%d of %d, %v: got %v, want ErrBusy: %t", c.left, c.total, c.unknown, err, c.busy)
			}
			if err == nil {
				leave()
			}
		}
	}
}

// TestQuotaOfSandboxes: what the sandboxes of a project may have counts from their creation to their end.
func TestQuotaOfSandboxes(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("the local backend needs Linux")
	}
	s, err := New(&Config{Sandbox: llmsandbox.Options{BestEffort: true, Backend: local.New(&local.Options{StateDir: t.TempDir()})}, Warm: -1, MaxMemory: 100 << 20})
	if err != nil {
		t.Fatal(err)
	}
	open := func(project string, memory int64) string {
		sb, err := s.Create(t.Context(), project, llmsandbox.Options{Language: "bash", Limits: llmsandbox.Limits{Memory: memory}})
		if err != nil {
			if !errors.Is(err, ErrQuota) {
				t.Fatal(err)
			}
			return ""
		}
		return sb.ID()
	}
	first := open("a", 60<<20)
	if first == "" || open("a", 0) != "" || open("a", 60<<20) != "" || open("b", 60<<20) == "" || open("a", 40<<20) == "" {
		t.Error("want 60 and 40 MiB of 100 for one project, and 60 for another, and no more")
	}
	if err := s.Remove(t.Context(), "a", first); err != nil {
		t.Fatal(err)
	}
	if open("a", 60<<20) == "" {
		t.Error("what a removed sandbox had is not given back")
	}
	if err := s.Close(t.Context()); err != nil {
		t.Error(err)
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
	if len(made) != 3 || refused != 5 {
		t.Errorf("%d made and %d refused, want 3 and 5", len(made), refused)
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
		sb, err := other.attach(t.Context(), "a", made.ID(), nil)
		if err != nil {
			t.Fatal(err)
		}
		if handles[i], err = other.keep(sb, "a", false); err != nil {
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
