package agenthost

import (
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/llmsandbox/llmsandbox/backend"
	"github.com/llmsandbox/llmsandbox/internal/agentclient"
)

// EnvToken is the variable of the agent's own environment that has its token. Programs
// inside do not get it.
const EnvToken = "LLMSANDBOX_TOKEN"

// Serve says how an agent serves a sandbox.
type Serve struct {
	Stdio   bool   // its first stream is its own stdin and stdout
	Workdir string // of programs
	Filter  string // the path of its system call filter
	// Grace is how long it waits for a connection after it has lost the last one, and
	// FirstGrace for the first one; 0: as long.
	Grace, FirstGrace time.Duration
	// LayerPath is where the layer of that index is mounted whose files are planted into its
	// writable target.
	LayerPath func(int) string
}

// ServeArgs are the arguments of an agent's program after "serve".
func ServeArgs(spec backend.Spec, s Serve) []string {
	args := []string{"--listen", Socket(spec.ID), "--token-env", EnvToken, "--workdir", s.Workdir, "--seccomp", s.Filter, "--grace", seconds(s.Grace)}
	if s.FirstGrace > 0 {
		args = append(args, "--first-grace", seconds(s.FirstGrace))
	}
	if s.Stdio {
		args = append(args, "--stdio")
	}
	args = append(args, agentclient.TimerArgs(spec.Deadline, spec.IdleTimeout)...)
	for i, l := range spec.Layers {
		if l.Writable {
			args = append(args, "--seed", s.LayerPath(i)+"="+l.Target)
		}
	}
	return args
}

// seconds are whole ones, and not fewer than d.
func seconds(d time.Duration) string {
	return strconv.FormatInt(int64((d+time.Second-1)/time.Second), 10)
}

// Record describes a sandbox that is made now.
func Record(spec backend.Spec, name, image, owner string) backend.Info {
	return backend.Info{
		ID: spec.ID, Backend: name, Image: image, Language: spec.Language, Created: time.Now(),
		Deadline: spec.Deadline, IdleTimeout: spec.IdleTimeout, Labels: spec.Labels, Limits: spec.Limits, Owner: owner,
	}
}

// CheckLimits fails when a limit that was asked for is not among what is enforced. The error
// wraps backend.ErrNotEnforced.
func CheckLimits(spec backend.Spec, controls []backend.Control) error {
	for _, c := range controls {
		if !c.Enforced && !spec.BestEffort && slices.Contains(spec.Limits.Required, c.Name) {
			return fmt.Errorf("%s: %w: %s: %s, or ask for best effort", c.Name, backend.ErrNotEnforced, c.Why, c.Fix)
		}
	}
	return nil
}
