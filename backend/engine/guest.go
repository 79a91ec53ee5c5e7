package engine

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/llmsandbox/llmsandbox/backend"
	"github.com/llmsandbox/llmsandbox/internal/agenthost"
	"github.com/llmsandbox/llmsandbox/internal/engine/image"
	"github.com/llmsandbox/llmsandbox/internal/environ"
)

// The variables of the agent's own environment, which no program inside sees. A user who
// may inspect the container may also enter it.
const (
	envToken = agenthost.EnvToken // the secret of those that may connect to the agent
	envGuest = "LLMSANDBOX_GUEST" // JSON of backend.Guest, for those who attach
)

// guest returns what the inside of a container from that image looks like.
func (b *Backend) guest(spec backend.Spec, img image.Image) backend.Guest {
	env := mergeEnv([]string{environ.DefaultPath}, img.Env)
	env = mergeEnv(env, []string{"HOME=" + workdir, "TMPDIR=" + tempDir, "LANG=C.UTF-8", "LC_ALL=C.UTF-8"})
	if rootUser(img.User) {
		// An image that has no user for us has no name for ours either.
		env = mergeEnv(env, []string{"USER=sandbox", "LOGNAME=sandbox"})
	}
	g := backend.Guest{
		Env: mergeEnv(env, spec.Env), Workdir: workdir, TempDir: tempDir,
		Image: img.Ref, Arch: img.Arch,
	}
	if img.Workdir != "/" {
		g.StartDir = img.Workdir
	}
	return g
}

// mergeEnv adds NAME=VALUE lines to others, later ones in place of earlier ones. Lines that
// are no variables, and variables of the agent's own, are dropped.
func mergeEnv(base, add []string) []string {
	return environ.Override(environ.OfPrograms(base), environ.OfPrograms(add))
}

// agentEnv is the environment that the agent is started with.
func agentEnv(token string, g backend.Guest) ([]string, error) {
	b, err := json.Marshal(g)
	if err != nil {
		return nil, fmt.Errorf("describe the inside: %w", err)
	}
	return []string{envToken + "=" + token, envGuest + "=" + string(b)}, nil
}

// parseAgentEnv is its reverse.
func parseAgentEnv(env []string) (token string, g backend.Guest, err error) {
	for _, kv := range env {
		if v, ok := strings.CutPrefix(kv, envToken+"="); ok {
			token = v
		}
		if v, ok := strings.CutPrefix(kv, envGuest+"="); ok {
			if err := json.Unmarshal([]byte(v), &g); err != nil {
				return "", g, fmt.Errorf("what the container says of its inside: %w", err)
			}
		}
	}
	if token == "" || g.Workdir == "" {
		return "", g, fmt.Errorf("the container's environment has no %s or %s", envToken, envGuest)
	}
	return token, g, nil
}
