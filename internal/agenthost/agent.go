package agenthost

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"path"
	"strconv"

	"github.com/llmsandbox/llmsandbox/backend"
	"github.com/llmsandbox/llmsandbox/internal/agentbin"
	"github.com/llmsandbox/llmsandbox/internal/seccomp"
)

// Modes of the files. Everyone may run the agent and no one may read it: the kernel then
// keeps other processes of the same user away from it from its first instruction on.
const (
	agentMode  = 0o111
	filterMode = 0o444
)

// A File is one of those that are brought into a container.
type File struct {
	Name string
	Mode int64
	Size int64
	io.Reader
}

// Files returns the system call filter and the agent for an architecture, in this order, to
// be read in this order and closed.
func Files(arch string) ([]File, io.Closer, error) {
	filter, err := seccomp.Filter(arch)
	if err != nil {
		return nil, nil, err
	}
	size, err := agentbin.Size(arch)
	if err != nil {
		return nil, nil, err
	}
	agent, err := agentbin.Open(arch)
	if err != nil {
		return nil, nil, err
	}
	return []File{
		{"seccomp", filterMode, int64(len(filter)), bytes.NewReader(filter)},
		{"agent", agentMode, size, agent},
	}, agent, nil
}

// places are where an agent is put, in order.
var places = []string{"/tmp", "/var/tmp", "/run", "/dev/shm"}

// A Bringer puts the agent into a running container, unless one of the same version is there.
type Bringer struct {
	Arch string // of the container, as GOARCH
	// Run runs a program in the container to its end. in, which may be nil, is its stdin.
	Run func(ctx context.Context, in io.Reader, argv ...string) error
	// Copy puts the agent's files into a directory, which it makes, of a container that has
	// no shell to do so. It may be nil.
	Copy func(ctx context.Context, dir string) error
	// Fix is what to do where no directory will do.
	Fix string
}

// Bring returns the path of an agent that can be started, in the first place that takes
// one. Nothing else in the container changes. The error wraps backend.ErrUnsupported.
func (b Bringer) Bring(ctx context.Context) (agent string, err error) {
	key, err := agentbin.Key(b.Arch)
	if err != nil {
		return "", err
	}
	var failures []error
	for _, place := range places {
		dir := path.Join(place, ".llmsandbox-"+key)
		agent := path.Join(dir, "agent")
		if b.Run(ctx, nil, agent, "version") == nil {
			return agent, nil
		}
		for _, put := range []func(context.Context, string) error{b.pipe, b.Copy} {
			if put == nil {
				continue
			}
			err := put(ctx, dir)
			if err == nil {
				err = b.Run(ctx, nil, agent, "version")
			}
			if err == nil {
				return agent, nil
			}
			failures = append(failures, fmt.Errorf("%s: %w", place, err))
		}
		if ctx.Err() != nil {
			break
		}
	}
	return "", fmt.Errorf("%w: there is no directory that can be written to and run from: %s: %w", backend.ErrUnsupported, b.Fix, errors.Join(failures...))
}

// takeScript takes a file from stdin, which is renamed when whole, so a half of it is
// never taken for it.
const takeScript = `set -e; umask 022; mkdir -p "$1"; new="$1/$2.$$"; trap 'rm -f "$new"' EXIT
cat >"$new"; [ "$(wc -c <"$new")" -eq "$4" ]; chmod "$3" "$new"; mv "$new" "$1/$2"`

// pipe has the container's own shell write the files, into whatever is mounted there.
func (b Bringer) pipe(ctx context.Context, dir string) error {
	files, done, err := Files(b.Arch)
	if err != nil {
		return err
	}
	defer done.Close()
	for _, f := range files {
		err := b.Run(ctx, f, "/bin/sh", "-c", takeScript, "sh", dir, f.Name, strconv.FormatInt(f.Mode, 8), strconv.FormatInt(f.Size, 10))
		if err != nil {
			return err
		}
	}
	return nil
}
