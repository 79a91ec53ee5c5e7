package transfer

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
)

// maxDepth bounds how deep folders that come out of a sandbox may lie: each level
// is held open.
const maxDepth = 256

// What is at a place on the host and forbids to put something there.
var (
	errLink      = fmt.Errorf("%w: there is a symbolic link at its place or on the way, which is not followed", ErrUnsafePath)
	errNotFolder = fmt.Errorf("there is something at its place or on the way that is not a folder: %w", fs.ErrExist)
	errFolder    = fmt.Errorf("there is a folder at its place: %w", fs.ErrExist)
)

// folders goes from folder to folder below a destination, and follows no link. It
// keeps the way to the last folder open, since an archive names a folder's members
// one after the other.
type folders struct {
	way   []*os.Root // way[0] is the destination
	names []string   // names[i] leads from way[i] to way[i+1]
}

func newFolders(dest *os.Root) *folders { return &folders{way: []*os.Root{dest}} }

// close closes all but the destination.
func (f *folders) close() { f.back(0) }

func (f *folders) back(depth int) {
	for len(f.names) > depth {
		last := len(f.names)
		f.way[last].Close() // nothing was written through it that could be lost
		f.way, f.names = f.way[:last], f.names[:last-1]
	}
}

// at returns a folder, made with those above it when missing. It is good until the
// next call.
func (f *folders) at(names []string) (*os.Root, error) {
	if len(names) > maxDepth {
		return nil, fmt.Errorf("%w: more than %d folders within each other", ErrTooLarge, maxDepth)
	}
	same := 0
	for same < len(names) && same < len(f.names) && names[same] == f.names[same] {
		same++
	}
	f.back(same)
	for _, name := range names[same:] {
		next, err := openFolder(f.way[len(f.way)-1], name)
		if err != nil {
			return nil, err
		}
		f.way, f.names = append(f.way, next), append(f.names, name)
	}
	return f.way[len(f.way)-1], nil
}

// openFolder opens a folder, which is made when missing. An os.Root alone would
// follow a link that leads to another place below it.
func openFolder(parent *os.Root, name string) (*os.Root, error) {
	seen, err := parent.Lstat(name)
	if errors.Is(err, fs.ErrNotExist) {
		if err = parent.Mkdir(name, 0o755); err == nil || errors.Is(err, fs.ErrExist) {
			seen, err = parent.Lstat(name)
		}
	}
	if err != nil {
		return nil, err
	}
	if err := mustBeFolder(seen); err != nil {
		return nil, err
	}
	folder, err := parent.OpenRoot(name)
	if err != nil {
		return nil, err
	}
	if err := sameFolder(folder, seen); err != nil {
		folder.Close()
		return nil, err
	}
	return folder, nil
}

func mustBeFolder(info fs.FileInfo) error {
	switch {
	case info.Mode()&fs.ModeSymlink != 0:
		return errLink
	case !info.IsDir():
		return errNotFolder
	}
	return nil
}

// sameFolder checks that a folder which was seen not to be a link is the one that
// was opened.
func sameFolder(folder *os.Root, seen fs.FileInfo) error {
	opened, err := folder.Stat(".")
	if err != nil {
		return err
	}
	if !os.SameFile(seen, opened) {
		return errLink
	}
	return nil
}

// hasDotDot tells whether a path has a component "..".
func hasDotDot(path string) bool {
	for part := range strings.SplitSeq(path, "/") {
		if part == ".." {
			return true
		}
	}
	return false
}
