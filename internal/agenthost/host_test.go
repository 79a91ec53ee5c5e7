package agenthost

import (
	"errors"
	"log/slog"
	"strings"
	"testing"

	"github.com/llmsandbox/llmsandbox/backend"
)

func TestRefuse(t *testing.T) {
	required := backend.Limits{Memory: 1 << 20, Required: []string{"memory"}}
	for _, c := range []struct {
		name string
		spec backend.Spec
		want error
		say  string
	}{
		{"nothing of its own", backend.Spec{Language: "python", Env: []string{"A=1"}}, nil, ""},
		{"an image", backend.Spec{Image: "python:3.13"}, backend.ErrInvalid, "python:3.13"},
		{"a GPU", backend.Spec{GPUs: "1"}, backend.ErrInvalid, "GPUs 1"},
		{"a directory", backend.Spec{Workdir: "/srv"}, backend.ErrInvalid, "working directory /srv"},
		{"a directory whose files are kept", backend.Spec{Workdir: "/srv", KeepFiles: true}, nil, ""},
		{"a limit", backend.Spec{Limits: required}, backend.ErrNotEnforced, "memory"},
		{"a limit as far as it goes", backend.Spec{Limits: required, BestEffort: true}, nil, ""},
		{"a limit by default", backend.Spec{Limits: backend.Limits{Memory: 1 << 20}}, nil, ""},
	} {
		for _, p := range []Place{Container, Pod} {
			err := p.Refuse(c.spec)
			if !errors.Is(err, c.want) {
				t.Errorf("%s, %s: %v, want %v", p, c.name, err, c.want)
			}
			if err != nil && !strings.Contains(err.Error(), c.say+": ") || err != nil && !strings.Contains(err.Error(), "existing "+string(p)) {
				t.Errorf("%s, %s: %q does not name both, want no error or an error containing %q", p, c.name, err, c.say+": ")
			}
		}
	}
}

func TestNoLayers(t *testing.T) {
	if err := Pod.NoLayers(); !errors.Is(err, backend.ErrUnsupported) || !strings.Contains(err.Error(), "existing pod") {
		t.Error(err)
	}
}

func TestLogSweep(t *testing.T) {
	var text strings.Builder
	log := slog.New(slog.NewTextHandler(&text, nil))
	found := []backend.Leftover{{Kind: "volume", Name: "kept", Reason: "in use"}, {Kind: "sandbox", Name: "removed", Removed: true}}
	LogSweep(nil, found, nil)
	LogSweep(log, found, errors.New("engine away"))
	got := text.String()
	if !strings.Contains(got, "engine away") || !strings.Contains(got, `name=kept error="in use"`) || strings.Contains(got, "name=removed") {
		t.Errorf("logged %q; want the error and what was not removed", got)
	}
}
