package mcp

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/llmsandbox/llmsandbox"
	"github.com/llmsandbox/llmsandbox/backend"
	"github.com/llmsandbox/llmsandbox/backend/local"
)

// A looseBackend is the local one on a machine that does not enforce some limits.
type looseBackend struct {
	backend.Backend
	loose []string
}

func (b looseBackend) Create(ctx context.Context, spec backend.Spec) (backend.Machine, error) {
	for _, limit := range spec.Limits.Required {
		if slices.Contains(b.loose, limit) && !spec.BestEffort {
			return nil, fmt.Errorf("%s: %w", limit, llmsandbox.ErrNotEnforced)
		}
	}
	m, err := b.Backend.Create(ctx, spec)
	return looseMachine{m, b.loose}, err
}

type looseMachine struct {
	backend.Machine
	loose []string
}

func (m looseMachine) Capabilities() backend.Capabilities {
	c := m.Machine.Capabilities()
	c.Controls = slices.Clone(c.Controls)
	for i := range c.Controls {
		// Whatever this machine itself can do, the others hold.
		c.Controls[i].Enforced = !slices.Contains(m.loose, c.Controls[i].Name)
	}
	return c
}

// What the server says of limits is what holds, wherever it says it.
func TestLimitsThatDoNotHoldAreSaid(t *testing.T) {
	s := newServer(t, Config{Warm: -1, Sandbox: llmsandbox.Options{Backend: looseBackend{local.New(nil), []string{"memory", "pids"}}}})
	if client := connect(t, s, nil); strings.Contains(client.InitializeResult().Instructions, "memory") {
		t.Errorf("before the check: %q, want no word of memory", client.InitializeResult().Instructions)
	}
	found, err := s.Check(testContext(t))
	if err != nil {
		t.Fatal(err)
	}
	if c, _ := found.Get("memory"); c.Enforced {
		t.Errorf("%+v, want memory not enforced", c)
	}
	client := connect(t, s, nil)
	wantHas(t, client.InitializeResult().Instructions, "has no network access and 1 CPU.", "does not enforce: memory, pids.")
	_, got := execute(t, client, args{"code": "print(1)"})
	session := open(t, client, args{})
	cell := decode[outcome](t, use(t, client, "run_in_session", args{"session_id": session.SessionID, "code": "1"}))
	for _, o := range []outcome{got, cell} {
		if !slices.Equal(o.NotEnforced, []string{"memory", "pids"}) {
			t.Errorf("%+v, want NotEnforced = [memory pids]", o)
		}
	}
}

func TestLimitsThatHoldAreSaid(t *testing.T) {
	s := newServer(t, Config{Warm: -1, Sandbox: llmsandbox.Options{Backend: looseBackend{Backend: local.New(nil)}}})
	if _, err := s.Check(testContext(t)); err != nil {
		t.Fatal(err)
	}
	client := connect(t, s, nil)
	instructions := client.InitializeResult().Instructions
	wantHas(t, instructions, "has no network access, 512 MiB of memory and 1 CPU. A run may take at most 5 minutes.")
	if strings.Contains(instructions, "enforce") {
		t.Errorf("%q, want no word of what is not enforced", instructions)
	}
	if _, got := execute(t, client, args{"code": "print(1)"}); got.NotEnforced != nil {
		t.Errorf("%+v, want no NotEnforced", got)
	}
}

func TestIsolationIsSaid(t *testing.T) {
	for isolation, want := range map[string]bool{"process": true, "namespace": false} {
		s := newServer(t, Config{Warm: -1, Sandbox: llmsandbox.Options{BestEffort: true, Backend: local.New(&local.Options{StateDir: t.TempDir(), Isolation: isolation})}})
		found, err := s.Check(testContext(t))
		if err != nil {
			t.Fatal(err)
		}
		if said := strings.Contains(s.instructions(), "Sandboxes have no namespaces"); found.Isolation != isolation || said != want {
			t.Errorf("isolation %s: %s, and %q, want that it is said: %v", isolation, found.Isolation, s.instructions(), want)
		}
	}
}

// Check fails with what calls would fail with.
func TestCheckFails(t *testing.T) {
	for name, c := range map[string]struct {
		cfg  Config
		want error
	}{
		"no image":                  {Config{Sandbox: llmsandbox.Options{Image: t.TempDir() + "/missing"}}, llmsandbox.ErrImageNotFound},
		"no image of one language":  {Config{Images: map[string]string{"go": t.TempDir() + "/missing"}}, llmsandbox.ErrImageNotFound},
		"a limit that is too small": {Config{Sandbox: llmsandbox.Options{Limits: llmsandbox.Limits{Memory: 1}}}, llmsandbox.ErrInvalid},
		"a network rule":            {Config{Sandbox: llmsandbox.Options{Network: llmsandbox.Network{Mode: llmsandbox.NetworkAllow, Allow: []string{"@@"}}}}, llmsandbox.ErrInvalid},
	} {
		c.cfg.Warm = -1
		if _, err := newServer(t, c.cfg).Check(testContext(t)); !errors.Is(err, c.want) {
			t.Errorf("%s: %v, want %v", name, err, c.want)
		}
	}
	// newServer asks for best effort.
	s, err := New(&Config{Warm: -1, Sandbox: llmsandbox.Options{
		Backend: looseBackend{local.New(nil), []string{"memory"}}, Limits: llmsandbox.Limits{Memory: 256 << 20},
	}})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Check(testContext(t)); !errors.Is(err, llmsandbox.ErrNotEnforced) {
		t.Errorf("a limit that does not hold: %v, want %v", err, llmsandbox.ErrNotEnforced)
	}
	if err := s.Close(testContext(t)); err != nil {
		t.Error(err)
	}
	if _, err := s.Check(testContext(t)); !errors.Is(err, errClosing) {
		t.Errorf("after Close: %v, want %v", err, errClosing)
	}
}

// After Check the first list of tools says which libraries are installed.
func TestInstalledLibrariesAreSaid(t *testing.T) {
	s := newServer(t, Config{Warm: -1})
	if _, err := s.Check(testContext(t)); err != nil {
		t.Fatal(err)
	}
	client := connect(t, s, nil)
	res, err := client.ListTools(testContext(t), nil)
	if err != nil {
		t.Fatal(err)
	}
	i := slices.IndexFunc(res.Tools, func(t *sdk.Tool) bool { return t.Name == "execute_code" })
	details := decode[languageDetails](t, use(t, client, "get_language_details", args{"language": "python"}))
	want := "Python has its standard library only."
	if len(details.Preinstalled) > 0 {
		want = "Python has these libraries: " + strings.Join(details.Preinstalled, ", ") + "."
	}
	wantHas(t, res.Tools[i].Description, want)
	if again, err := client.ListTools(testContext(t), nil); err != nil || again.Tools[i].Description != res.Tools[i].Description {
		t.Errorf("the second time: %v, %q, want %q", err, again.Tools[i].Description, res.Tools[i].Description)
	}
}

// A poorBackend is on a machine that has Python and Bash only.
type poorBackend struct{ backend.Backend }

func (b poorBackend) Layers() (backend.Layers, error) {
	l, err := b.Backend.Layers()
	return poorLayers{l}, err
}

type poorLayers struct{ backend.Layers }

func (poorLayers) Toolchain(_ context.Context, _ backend.Spec, program string, _ []string) (string, error) {
	if strings.HasPrefix(program, "python") || program == "bash" {
		return program, nil
	}
	return "", nil
}

func TestOnlyLanguagesThatCanRunAreOffered(t *testing.T) {
	poor := poorBackend{local.New(nil)}
	for _, c := range []struct {
		name string
		cfg  Config
		want string
	}{
		{"the host's own", Config{}, "python bash"},
		{"one with an image", Config{Images: map[string]string{"rb": "ruby:3"}}, "python ruby bash"},
		{"asked for", Config{Languages: []string{"r"}}, "r"},
	} {
		c.cfg.Warm, c.cfg.Sandbox.Backend = -1, poor
		if got := strings.Join(newServer(t, c.cfg).catalog.names, " "); got != c.want {
			t.Errorf("%s: %s, want %s", c.name, got, c.want)
		}
	}
	if got := newServer(t, Config{Warm: -1, Sandbox: llmsandbox.Options{Backend: poor, Image: "x"}}).catalog.names; len(got) < 8 {
		t.Errorf("with an image for all: %v, want all languages", got)
	}
}
