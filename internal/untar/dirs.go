package untar

import (
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/llmsandbox/llmsandbox/internal/tarcheck"
)

// What is at a place on the host and forbids to put something there.
var (
	errLink   = fmt.Errorf("%w: there is a symbolic link at its place or on the way, which is not followed", tarcheck.ErrUnsafe)
	errNotDir = fmt.Errorf("there is something at its place or on the way that is not a directory: %w", fs.ErrExist)
	errDir    = fmt.Errorf("there is a directory at its place: %w", fs.ErrExist)
)

// dirs goes from directory to directory below a destination, and follows no link. It
// keeps the way to the last directory open, since an archive names a directory's members
// one after the other.
type dirs struct {
	way   []*os.Root  // way[0] is the destination
	names []string    // names[i] leads from way[i] to way[i+1]
	mode  fs.FileMode // of those that are made; 0 leaves it to the umask
}

func (d *dirs) back(depth int) {
	for len(d.names) > depth {
		last := len(d.names)
		d.way[last].Close() // nothing was written through it that could be lost
		d.way, d.names = d.way[:last], d.names[:last-1]
	}
}

// at returns a directory, made with those above it when missing. It is good until the
// next call.
func (d *dirs) at(names []string) (*os.Root, error) {
	same := 0
	for same < len(names) && same < len(d.names) && names[same] == d.names[same] {
		same++
	}
	d.back(same)
	for _, name := range names[same:] {
		next, err := d.open(d.way[len(d.way)-1], name)
		if err != nil {
			return nil, err
		}
		d.way, d.names = append(d.way, next), append(d.names, name)
	}
	return d.way[len(d.way)-1], nil
}

// open opens a directory in another one, and makes it when it is missing.
func (d *dirs) open(parent *os.Root, name string) (*os.Root, error) {
	err := parent.Mkdir(name, 0o755)
	made := err == nil
	if err != nil && !errors.Is(err, fs.ErrExist) {
		return nil, err
	}
	dir, err := openDir(parent.Lstat, parent.OpenRoot, name)
	if err == nil && made && d.mode != 0 {
		if err = dir.Chmod(".", d.mode); err != nil {
			dir.Close()
			return nil, err
		}
	}
	return dir, err
}

// OpenDir opens a directory, and nothing by a link to one.
func OpenDir(path string) (*os.Root, error) { return openDir(os.Lstat, os.OpenRoot, path) }

// openDir makes sure that the directory which was opened is the one that was seen to be no
// link. An os.Root alone would follow a link that leads to another place below it.
func openDir(lstat func(string) (fs.FileInfo, error), open func(string) (*os.Root, error), name string) (*os.Root, error) {
	seen, err := lstat(name)
	switch {
	case err != nil:
		return nil, err
	case seen.Mode()&fs.ModeSymlink != 0:
		return nil, errLink
	case !seen.IsDir():
		return nil, errNotDir
	}
	dir, err := open(name)
	if err != nil {
		return nil, err
	}
	opened, err := dir.Stat(".")
	if err == nil && !os.SameFile(seen, opened) {
		err = errLink
	}
	if err != nil {
		dir.Close()
		return nil, err
	}
	return dir, nil
}
