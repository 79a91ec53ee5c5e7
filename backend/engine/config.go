package engine

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/moby/moby/api/types/container"
	"github.com/moby/moby/api/types/mount"

	"github.com/llmsandbox/llmsandbox/backend"
	"github.com/llmsandbox/llmsandbox/internal/agenthost"
	"github.com/llmsandbox/llmsandbox/internal/agentproto"
	"github.com/llmsandbox/llmsandbox/internal/engine/image"
	"github.com/llmsandbox/llmsandbox/internal/environ"
)

// Where things are inside. The agent's directory is a mount of its own, which the image
// need not have.
const (
	defaultWorkdir = "/sandbox"

	tempDir  = "/tmp"
	agentDir = "/.llmsandbox"
	layerDir = agentDir + "-layers" // followed by "/" and a number
)

// maxShm bounds /dev/shm, whose pages count as memory like those of the other two.
const maxShm = 64 << 20

// hostConfig is the safe default: nothing is shared, nothing is writable but two
// file systems in memory, and every limit is set. What the caller asked for by name is added.
func hostConfig(spec backend.Spec, agent string) *container.HostConfig {
	noSwap := spec.Limits.Memory // memory and swap together
	h := &container.HostConfig{
		AutoRemove:     true,
		NetworkMode:    "none",
		ReadonlyRootfs: !spec.WritableRoot,
		CapDrop:        []string{"ALL"},
		CapAdd:         capabilitiesOf(spec),
		MaskedPaths:    maskedFrom(spec),
		SecurityOpt:    []string{"no-new-privileges"},
		LogConfig:      container.LogConfig{Type: "none"}, // its output is our stream
		IpcMode:        container.IPCModePrivate,
		Tmpfs:          map[string]string{workdirOf(spec): tmpfs(spec.Limits.Disk), tempDir: tmpfs(spec.Limits.Disk)},
		ShmSize:        maxShm,
		Mounts:         []mount.Mount{volumeMount(agent, agentDir, true)},
		Resources: container.Resources{
			Memory: spec.Limits.Memory, MemorySwap: noSwap,
			NanoCPUs: int64(spec.Limits.CPUs * 1e9),
		},
	}
	if spec.Limits.PIDs > 0 {
		pids := spec.Limits.PIDs + agentproto.SpareThreads
		h.PidsLimit = &pids
	}
	if spec.Limits.Disk > 0 {
		h.ShmSize = min(maxShm, spec.Limits.Disk)
	}
	for i, l := range spec.Layers {
		target := l.Target
		if l.Writable {
			target = layerPath(i) // from where the agent links its files to the target
		}
		h.Mounts = append(h.Mounts, volumeMount(l.Source, target, true))
	}
	for _, m := range spec.Mounts {
		h.Mounts = append(h.Mounts, readOnlyBind(m))
	}
	return h
}

// tmpfs are the mount options of a writable file system of a size, 0 for any.
func tmpfs(size int64) string {
	o := "rw,exec,nosuid,nodev,mode=1777"
	if size > 0 {
		o += ",size=" + strconv.FormatInt(size, 10)
	}
	return o
}

// giveTmpfs makes the writable file systems the user's own, where that is a number.
func giveTmpfs(spec backend.Spec, h *container.HostConfig, user string) {
	uid, gid, _ := strings.Cut(user, ":")
	if _, err := strconv.ParseUint(uid, 10, 31); err != nil {
		return
	}
	for _, dir := range []string{workdirOf(spec), tempDir} {
		if h.Tmpfs[dir] != tmpfs(spec.Limits.Disk) {
			continue // the caller's own
		}
		h.Tmpfs[dir] += ",uid=" + uid
		if _, err := strconv.ParseUint(gid, 10, 31); err == nil {
			h.Tmpfs[dir] += ",gid=" + gid
		}
	}
}

// volumeMount has a volume without files of the image.
func volumeMount(name, target string, readOnly bool) mount.Mount {
	return mount.Mount{Type: mount.TypeVolume, Source: name, Target: target, ReadOnly: readOnly,
		VolumeOptions: &mount.VolumeOptions{NoCopy: true}}
}

func layerPath(i int) string { return layerDir + "/" + strconv.Itoa(i) }

// applySettings lays the caller's options over the defaults.
func (b *Backend) applySettings(spec backend.Spec, c *container.Config, h *container.HostConfig) error {
	before := h.Resources
	if err := b.options.Settings.Apply(c, h); err != nil {
		return fmt.Errorf("%w: %w", backend.ErrInvalid, err)
	}
	// A limit said twice must be the same twice.
	for _, l := range []struct {
		name     string
		was, now int64
	}{
		{"memory", before.Memory, h.Memory}, {"cpus", before.NanoCPUs, h.NanoCPUs},
		{"pids", value(before.PidsLimit), value(h.PidsLimit)},
	} {
		if l.was != l.now && slices.Contains(spec.Limits.Required, l.name) {
			return fmt.Errorf("%w: the limit %s and the runtime options ask for different values, %d and %d: leave one out", backend.ErrInvalid, l.name, l.was, l.now)
		}
	}
	return nil
}

func value(p *int64) int64 {
	if p == nil {
		return 0
	}
	return *p
}

// The variables of the agent's own environment, which no program inside sees. A user who
// may inspect the container may also enter it.
const (
	envToken = agenthost.EnvToken // the secret of those that may connect to the agent
	envGuest = "LLMSANDBOX_GUEST" // JSON of backend.Guest, for those who attach
)

// guest returns what the inside of a container from that image looks like.
func (b *Backend) guest(spec backend.Spec, img image.Image) backend.Guest {
	env := mergeEnv([]string{environ.DefaultPath}, img.Env)
	env = mergeEnv(env, []string{"HOME=" + workdirOf(spec), "TMPDIR=" + tempDir, "LANG=C.UTF-8", "LC_ALL=C.UTF-8"})
	env = mergeEnv(env, nameOf(spec, img))
	if agenthost.AsRoot(spec) {
		env = environ.WithSystemPath(env)
	}
	g := backend.Guest{
		Env: mergeEnv(env, spec.Env), Workdir: workdirOf(spec), TempDir: tempDir,
		Image: img.Ref, Arch: img.Arch,
	}
	if img.Workdir != "/" && spec.Workdir == "" {
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
