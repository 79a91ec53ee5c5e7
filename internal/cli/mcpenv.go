package cli

import (
	"context"
	"crypto/rand"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/llmsandbox/llmsandbox"
	"github.com/llmsandbox/llmsandbox/internal/mcpenv"
)

// A flagSet tells whether a flag was given.
type flagSet interface{ Changed(name string) bool }

// environment fills in what no flag says from the variables that a client's configuration
// sets.
func (f *mcpFlags) environment(set flagSet, log *slog.Logger) error {
	for _, name := range mcpenv.Unknown(os.Environ()) {
		log.Warn("a variable that looks like one of a sandbox is not known, and has no effect", "name", name)
	}
	var keys []string
	for _, option := range f.place.Engine.RuntimeOptions {
		key, _, _ := strings.Cut(option, "=")
		keys = append(keys, "runtime-option "+key)
	}
	e, err := mcpenv.Read(os.Getenv, f.place.Backend, func(flag string) bool {
		return slices.Contains(keys, flag) || set.Changed(flag)
	})
	if err != nil {
		return err
	}
	if e.Memory != "" {
		f.memory = e.Memory
	}
	if e.CPUs != "" {
		f.cpus = e.CPUs
	}
	if e.Namespace != "" {
		f.place.Cluster.Namespace = e.Namespace
	}
	for _, o := range e.Options {
		f.place.Engine.RuntimeOptions = append(f.place.Engine.RuntimeOptions, o.Key+"="+o.Value)
	}
	f.commit = f.commit || e.Commit
	// A server opens one sandbox after another: to get the image anew for each is only
	// done when it is asked for.
	named := f.image != "" || f.place.Engine.Dockerfile != ""
	f.place.Engine.KeepImage = f.place.Engine.KeepImage || f.place.onEngine() && named && !e.RemoveImage
	return nil
}

// lifeFlag reads a duration that has an end.
func lifeFlag(name, text string) (time.Duration, error) {
	d, err := time.ParseDuration(text)
	if err != nil || d <= 0 {
		return 0, fmt.Errorf("--%s %q: use a duration above 0 such as 30m", name, text)
	}
	return d, nil
}

// commitNew makes an image under a tag that no image has.
func commitNew(ctx context.Context, sb *llmsandbox.Sandbox, language string) (string, error) {
	tag := "llmsandbox/mcp-" + language + ":" + time.Now().UTC().Format("20060102-150405") + "-" + strings.ToLower(rand.Text()[:10])
	if _, err := commit(ctx, sb, tag, ""); err != nil {
		return "", err
	}
	return tag, nil
}
