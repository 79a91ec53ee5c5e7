package local

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/llmsandbox/llmsandbox/backend"
	"github.com/llmsandbox/llmsandbox/internal/errclass"
)

// placeLayers lets code read the layers where they are. One that it may change is below its directory for temporary files as
// well: as directories of its own with links to the files, which it can replace.
func (c *creation) placeLayers() error {
	c.places.read = slices.Clip(c.places.read) // which other sandboxes share
	for _, l := range c.spec.Layers {
		if err := c.openLayer(l.Source); err != nil {
			return err
		}
		c.places.read = append(c.places.read, l.Source)
		if l.Target == l.Source {
			continue
		}
		below, ok := strings.CutPrefix(l.Target, tempDir+"/")
		if !ok {
			return fmt.Errorf("layer %s: %w: the isolation process has layers where they are, or below %s: use the isolation namespace", l.Target, backend.ErrUnsupported, tempDir)
		}
		if err := c.linkLayer(l.Source, filepath.Join(c.places.dir, inPlaceTemp), below); err != nil {
			return fmt.Errorf("make %s of a layer: %w", l.Target, err)
		}
	}
	return nil
}

// openLayer makes sure that the code's user can come to a layer: layers of the store are below directories that are root's alone,
// and the group of all sandboxes may go through those.
func (c *creation) openLayer(source string) error {
	if !c.identity.separate {
		return nil
	}
	store := c.dirs.store()
	for _, dir := range store.Above(source) {
		var st unix.Stat_t
		err := unix.Stat(dir, &st)
		if err == nil && (st.Gid != c.identity.codeGID || st.Mode&0o010 == 0) {
			err = errors.Join(os.Chown(dir, -1, int(c.identity.codeGID)), os.Chmod(dir, 0o710)) //nolint:gosec // nobody but code of sandboxes is in that group
		}
		if err != nil {
			return fmt.Errorf("let the sandbox's user come to a layer: %w", err)
		}
	}
	for dir := filepath.Dir(source); dir != "/"; dir = filepath.Dir(dir) {
		var st unix.Stat_t
		if err := unix.Stat(dir, &st); err != nil {
			return err
		}
		if st.Mode&0o001 == 0 && (st.Gid != c.identity.codeGID || st.Mode&0o010 == 0) {
			return errclass.Errorf(backend.ErrUnsupported, "layers are below %s, where the user of a sandbox cannot come to: let other users go through it (chmod o+x), or set LLMSANDBOX_CACHE_DIR to another folder", dir)
		}
	}
	return nil
}

// linkLayer makes a tree of directories with links to a layer's files.
func (c *creation) linkLayer(source, temp, below string) error {
	own := func(dir string) error {
		err := os.Mkdir(dir, 0o700)
		if err == nil && c.identity.separate {
			err = os.Lchown(dir, int(c.identity.codeUID), int(c.identity.codeGID))
		}
		return err
	}
	dir := temp
	for _, name := range strings.Split(filepath.Dir(below), "/") {
		dir = filepath.Join(dir, name)
		if err := own(dir); err != nil && !errors.Is(err, fs.ErrExist) {
			return err
		}
	}
	return filepath.WalkDir(source, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		to := filepath.Join(temp, below, strings.TrimPrefix(path, source))
		if d.IsDir() {
			return own(to)
		}
		return os.Symlink(path, to)
	})
}
