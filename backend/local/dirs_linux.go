package local

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"github.com/llmsandbox/llmsandbox/internal/layerstore"
)

// dirs are the backend's own folders, each private to its owner.
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
		if err := privateDir(p.path); err != nil {
			return dirs{}, fmt.Errorf("%s: %w: set %s to a folder of your own that can be written", p.use, err, p.variable)
		}
	}
	return d, nil
}

func stateDir(o Options) (string, error) {
	if o.StateDir != "" {
		return filepath.Abs(o.StateDir)
	}
	if dir := os.Getenv("LLMSANDBOX_STATE_DIR"); dir != "" {
		return filepath.Abs(dir)
	}
	if os.Geteuid() == 0 {
		return "/run/llmsandbox", nil
	}
	if dir := os.Getenv("XDG_RUNTIME_DIR"); filepath.IsAbs(dir) {
		if fi, err := os.Stat(dir); err == nil && fi.IsDir() {
			return filepath.Join(dir, "llmsandbox"), nil
		}
	}
	// No session of a login manager. The folder's owner and mode are checked, so
	// that a name anybody could take is no danger.
	return filepath.Join(os.TempDir(), fmt.Sprintf("llmsandbox-%d", os.Geteuid())), nil
}

func cacheDir(o Options) (string, error) {
	if o.CacheDir != "" {
		return filepath.Abs(o.CacheDir)
	}
	return layerstore.DefaultDir()
}

// privateDir makes sure that path is a folder, not a link to one, of the caller's own
// that nobody else can enter.
func privateDir(path string) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	if err := os.Mkdir(path, 0o700); err != nil && !errors.Is(err, os.ErrExist) {
		return err
	}
	fd, err := unix.Open(path, unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return &os.PathError{Op: "open", Path: path, Err: err}
	}
	defer unix.Close(fd)
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return &os.PathError{Op: "stat", Path: path, Err: err}
	}
	if int(st.Uid) != os.Geteuid() {
		return fmt.Errorf("%s belongs to uid %d, not to uid %d", path, st.Uid, os.Geteuid())
	}
	if st.Mode&0o077 != 0 {
		if err := unix.Fchmod(fd, 0o700); err != nil {
			return &os.PathError{Op: "chmod", Path: path, Err: err}
		}
	}
	return nil
}
