package engine

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/moby/moby/api/types/container"
	"github.com/moby/moby/client"

	"github.com/llmsandbox/llmsandbox/backend"
	"github.com/llmsandbox/llmsandbox/internal/engine/absent"
	"github.com/llmsandbox/llmsandbox/internal/engine/await"
	"github.com/llmsandbox/llmsandbox/internal/engine/image"
)

// maxVariables bounds what an environment may print before its variables, and these.
const maxVariables = 256 << 10

var errTooMuch = errors.New("it prints more than 256 KiB before and with its variables")

// probe is the program that prints the variables in an environment, after a mark: what
// scripts of the environment print themselves comes before it.
func (m *Micromamba) probe(mark string) []string {
	return append(m.enter(), "sh", "-c", "echo $0; exec env -0", mark)
}

// enterImage returns the variables that entering the environment changes, in a container
// that is confined like a sandbox.
func (b *Backend) enterImage(ctx context.Context, img image.Image, env []string) ([]string, error) {
	e := b.options.Micromamba
	mark := newMark()
	c := neverStarted(img.ID)
	c.Entrypoint, c.Cmd, c.Env, c.User, c.WorkingDir = e.probe(mark), []string{}, env, user(img), "/"
	c.AttachStdout, c.AttachStderr = true, true
	c.Healthcheck = &container.HealthConfig{Test: []string{"NONE"}}
	h := &container.HostConfig{
		NetworkMode: "none", ReadonlyRootfs: true, CapDrop: []string{"ALL"}, SecurityOpt: []string{"no-new-privileges"},
		Tmpfs: map[string]string{workdir: tmpfs(0), tempDir: tmpfs(0)},
	}
	if b.flavor.TmpfsOwner {
		giveTmpfs(backend.Spec{}, h, c.User)
	}
	if b.flavor.Adjust != nil {
		b.flavor.Adjust(c, h)
	}
	out, err := b.runToEnd(ctx, c, h)
	if err != nil {
		return nil, fmt.Errorf("enter it with %s: %w", strings.Join(e.enter(), " "), err)
	}
	return changed(env, out, mark)
}

// enterContainer adds what entering the environment changes in an existing container.
// What it writes goes to place, since the sandbox's own directory is not there yet.
func (b *Backend) enterContainer(ctx context.Context, id, place string, g *backend.Guest) error {
	e := b.options.Micromamba
	mark := newMark()
	env := mergeEnv(g.Env, []string{"HOME=" + place, "TMPDIR=" + place})
	out, err := b.output(ctx, id, maxVariables+1, env, nil, e.probe(mark)...)
	if err != nil {
		return fmt.Errorf("enter %s: %w", e, err)
	}
	vars, err := changed(env, out, mark)
	if err == nil && len(out) > maxVariables {
		err = errTooMuch
	}
	if err != nil {
		return fmt.Errorf("enter %s: %w", e, err)
	}
	g.Env = mergeEnv(g.Env, vars)
	return nil
}

func newMark() string { return "variables-" + strings.ToLower(rand.Text()) }

// runToEnd runs a container that is removed afterwards, and returns what it printed.
func (b *Backend) runToEnd(ctx context.Context, c *container.Config, h *container.HostConfig) (_ []byte, err error) {
	made, err := b.client.ContainerCreate(ctx, client.ContainerCreateOptions{Config: c, HostConfig: h})
	if err != nil {
		return nil, b.explain("make a container", err)
	}
	defer func() {
		_, rerr := b.client.ContainerRemove(context.WithoutCancel(ctx), made.ID, client.ContainerRemoveOptions{Force: true, RemoveVolumes: true})
		if !absent.Container(rerr) {
			err = errors.Join(err, b.explain("remove a container", rerr))
		}
	}()
	at, err := b.client.ContainerAttach(ctx, made.ID, client.ContainerAttachOptions{Stream: true, Stdout: true, Stderr: true})
	if err != nil {
		return nil, b.explain("take the container's output", err)
	}
	defer at.Close()
	stop := context.AfterFunc(ctx, func() { at.Close() })
	defer stop()
	if _, err := b.client.ContainerStart(ctx, made.ID, client.ContainerStartOptions{}); err != nil {
		return nil, b.explain("start "+c.Entrypoint[0]+", which must be on the image's PATH", err)
	}
	s := newStream(at.HijackedResponse)
	out, err := io.ReadAll(io.LimitReader(s, maxVariables+1))
	if err == nil && len(out) > maxVariables {
		err = errTooMuch
	}
	if err != nil {
		return nil, fmt.Errorf("read what %s prints: %w", c.Entrypoint[0], err)
	}
	r := <-await.Container(ctx, b.client, made.ID, waitNotRunning)
	if r.Err != nil {
		return nil, b.explain("wait for "+c.Entrypoint[0], r.Err)
	}
	if r.Code != 0 {
		return nil, fmt.Errorf("%s ended with %d: %q", c.Entrypoint[0], r.Code, s.Said()+string(out))
	}
	return out, nil
}

// ofProcess are the variables that are of one process, or that an engine gives each
// container.
var ofProcess = map[string]bool{
	"_": true, "PWD": true, "OLDPWD": true, "SHLVL": true, "HOSTNAME": true, "TERM": true, "container": true,
}

// changed returns the variables after the mark that are not among those before.
func changed(before []string, out []byte, mark string) ([]string, error) {
	_, list, found := bytes.Cut(out, []byte(mark+"\n"))
	if !found {
		return nil, errors.New("it ended well without having started the program")
	}
	was := map[string]bool{}
	for _, kv := range before {
		was[kv] = true
	}
	var vars []string
	for kv := range strings.SplitSeq(string(list), "\x00") {
		name, _, ok := strings.Cut(kv, "=")
		if ok && name != "" && !ofProcess[name] && !was[kv] {
			vars = append(vars, kv)
		}
	}
	return vars, nil
}
