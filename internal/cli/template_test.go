package cli

import (
	"log/slog"
	"path/filepath"
	"testing"

	"github.com/spf13/pflag"

	"github.com/llmsandbox/llmsandbox"
)

// The image of a template stays on an engine, for the sandboxes after the one that it was pulled for.
func TestImageOfTemplateIsKept(t *testing.T) {
	t.Setenv("LLMSANDBOX_CONFIG_DIR", t.TempDir())
	t.Setenv("DOCKER_HOST", "unix://"+filepath.Join(t.TempDir(), "nobody"))
	for name, want := range map[string]bool{"image": true, "none": false} {
		template := llmsandbox.Template{}
		if want {
			template.Image = "python:3.13-slim"
		}
		if err := llmsandbox.CreateTemplate(name, template); err != nil {
			t.Fatal(err)
		}
		var server mcpFlags
		set := pflag.NewFlagSet(name, pflag.ContinueOnError)
		server.register(set)
		if err := set.Parse([]string{"--backend", "docker", "--template", name}); err != nil {
			t.Fatal(err)
		}
		cfg, err := server.config(set, slog.New(slog.DiscardHandler))
		if err != nil || server.place.Engine.KeepImage != want || cfg.Sandbox.Template != name {
			t.Errorf("%s: of a server %v, %+v, %v, want %v and the template", name, server.place.Engine.KeepImage, cfg.Sandbox, err, want)
		}
		warmed := sandboxFlags{template: name, place: place{Backend: "docker"}}
		if err := warmed.warm(t.Context()); err == nil || warmed.place.Engine.KeepImage != want {
			t.Errorf("%s: of warm %v, %v, want %v, and an error of the engine", name, warmed.place.Engine.KeepImage, err, want)
		}
	}
}
