package local

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"sort"
	"strings"
	"sync"

	"golang.org/x/sys/unix"

	"github.com/llmsandbox/llmsandbox/backend"
	"github.com/llmsandbox/llmsandbox/internal/agentbin"
	"github.com/llmsandbox/llmsandbox/internal/layerstore"
	"github.com/llmsandbox/llmsandbox/internal/statedir"
)

// Backend creates sandboxes on this machine. It may be used concurrently.
type Backend struct {
	options Options
	dirs    func() (dirs, error)
	agent   func() (string, error) // path of the agent's binary
	// openAgent is that of one which any user may execute who has it open.
	openAgent func() (string, error)
	memory    *os.File  // keeps it open where it has no name
	sweep     sync.Once // the collection of leftovers in the background
	// Only tests wait for sweeping: a sweep only removes what is
	// already dead and may be cut off anywhere.
	sweeping sync.WaitGroup
	isolator isolator
	disks    diskTemplates
	host     hostRoots
	// writableHost is the one for sandboxes with Spec.WritableRoot.
	writableHost hostRoots
	// usersHost is the one of those with Spec.User as well.
	usersHost hostRoots
}

// New returns the local backend; nil options are the defaults. It looks at nothing yet: what this machine cannot do
// is the error of the first call that needs it.
func New(opts *Options) *Backend {
	b := &Backend{options: *cmp.Or(opts, &Options{}), isolator: namespaces{}}
	if b.inPlace() {
		b.isolator = processes{}
	}
	b.dirs = sync.OnceValues(func() (dirs, error) { return prepareDirs(b.options) })
	b.agent = sync.OnceValues(b.placeAgent)
	b.openAgent = sync.OnceValues(func() (string, error) {
		path, err := b.agent()
		if err != nil || strings.HasPrefix(path, "/proc/self/fd/") {
			return path, err
		}
		return b.agentInMemory(path)
	})
	return b
}

var _ backend.Backend = (*Backend)(nil)

// Name is "local".
func (*Backend) Name() string { return "local" }

// dirs are the backend's own directories, each private to its owner.
type dirs struct {
	state     string
	sandboxes string // below state
	empty     string // below state; nothing is ever put into it
	cache     string
}

func prepareDirs(o Options) (dirs, error) {
	state, err := stateDir(o)
	if err != nil {
		return dirs{}, err
	}
	cache, err := cacheDir(o)
	if err != nil {
		return dirs{}, err
	}
	d := dirs{state: state, sandboxes: filepath.Join(state, "sandboxes"), empty: filepath.Join(state, "empty"), cache: cache}
	for _, p := range []struct{ path, use, variable string }{
		{d.state, "state folder", "LLMSANDBOX_STATE_DIR"},
		{d.sandboxes, "state folder", "LLMSANDBOX_STATE_DIR"},
		{d.empty, "state folder", "LLMSANDBOX_STATE_DIR"},
		{d.cache, "cache folder", "LLMSANDBOX_CACHE_DIR"},
	} {
		if err := layerstore.MakePrivate(p.path); err != nil {
			return dirs{}, fmt.Errorf("%s: %w: set %s to a folder of your own that can be written", p.use, err, p.variable)
		}
	}
	return d, nil
}

func stateDir(o Options) (string, error) {
	if o.StateDir != "" {
		return filepath.Abs(o.StateDir)
	}
	return statedir.Default()
}

func cacheDir(o Options) (string, error) {
	if o.CacheDir != "" {
		return filepath.Abs(o.CacheDir)
	}
	return layerstore.DefaultDir()
}

// placeAgent puts the embedded agent where it can be executed and returns its path.
func (b *Backend) placeAgent() (string, error) {
	if b.options.agent != "" {
		return b.options.agent, nil
	}
	d, err := b.dirs()
	if err != nil {
		return "", err
	}
	path, err := agentbin.Extract(d.cache, runtime.GOARCH)
	if err != nil {
		return "", fmt.Errorf("unpack the guest agent: %w", err)
	}
	if executable(path) {
		return path, nil
	}
	// The cache is on a file system without execution; memory never is.
	return b.agentInMemory(path)
}

func executable(path string) bool {
	var st unix.Statfs_t
	return unix.Statfs(path, &st) == nil && st.Flags&unix.ST_NOEXEC == 0
}

// agentInMemory copies the agent to a sealed file without a name, which lives as long
// as the backend.
func (b *Backend) agentInMemory(path string) (string, error) {
	source, err := os.Open(path)
	if err != nil {
		return "", fmt.Errorf("guest agent: %w", err)
	}
	defer source.Close()
	fd, err := unix.MemfdCreate("llmsandbox-agent", unix.MFD_CLOEXEC|unix.MFD_ALLOW_SEALING|unix.MFD_EXEC)
	if errors.Is(err, unix.EINVAL) { // before Linux 6.3 every memfd can be executed
		fd, err = unix.MemfdCreate("llmsandbox-agent", unix.MFD_CLOEXEC|unix.MFD_ALLOW_SEALING)
	}
	if err != nil {
		return "", fmt.Errorf("guest agent in memory: %w", err)
	}
	memory := os.NewFile(uintptr(fd), "llmsandbox-agent")
	_, err = io.Copy(memory, source)
	if err == nil {
		_, err = unix.FcntlInt(memory.Fd(), unix.F_ADD_SEALS, unix.F_SEAL_WRITE|unix.F_SEAL_SHRINK|unix.F_SEAL_GROW|unix.F_SEAL_SEAL)
	}
	if err != nil {
		memory.Close()
		return "", fmt.Errorf("guest agent in memory: %w", err)
	}
	b.memory = memory
	// The child that executes it is a copy of this process and has the descriptor.
	return fmt.Sprintf("/proc/self/fd/%d", fd), nil
}

// List returns the sandboxes in the state directory whose owner lives, oldest first.
func (b *Backend) List(ctx context.Context) ([]backend.Info, error) {
	d, err := b.dirs()
	if err != nil {
		return nil, err
	}
	entries, err := os.ReadDir(d.sandboxes)
	if err != nil {
		return nil, fmt.Errorf("list sandboxes: %w", err)
	}
	var all []backend.Info
	var errs []error
	for _, e := range entries {
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		path := filepath.Join(d.sandboxes, e.Name())
		if !validID(e.Name()) {
			continue
		}
		live, err := owned(path)
		if err != nil {
			errs = append(errs, err)
		}
		if !live {
			continue
		}
		r, err := readRecord(path)
		if errors.Is(err, os.ErrNotExist) {
			continue // being made, or removed meanwhile
		}
		if err != nil {
			errs = append(errs, err)
			continue
		}
		all = append(all, r.Info)
	}
	sort.Slice(all, func(i, j int) bool { return all[i].Created.Before(all[j].Created) })
	return all, errors.Join(errs...)
}

// OwnRoots implements [backend.OwnRoots].
func (*Backend) OwnRoots() {}
