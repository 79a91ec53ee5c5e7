//go:build unix

package layertree

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"sync/atomic"

	"golang.org/x/sync/errgroup"
	"golang.org/x/sys/unix"

	"github.com/llmsandbox/llmsandbox/internal/tarcheck"
)

// ErrConflict: two directories have different things of one name.
var ErrConflict = errors.New("they differ")

// Link makes dir, which is empty, hold what several directories hold. Files are hard links, which take no space, so
// nobody may write to them. A name that is in two directories must be a directory in both, or the same file.
func Link(ctx context.Context, dir string, o Options, from ...string) error {
	work, ctx := errgroup.WithContext(ctx)
	work.SetLimit(2 * runtime.NumCPU())
	l := &linker{work: work, dir: dir, o: o}
	work.Go(func() error { return l.below(ctx, dir, from) })
	return work.Wait()
}

type linker struct {
	work         *errgroup.Group
	dir          string
	o            Options
	names, bytes atomic.Int64 // linked so far
}

// A linked name is where it was found first.
type linked struct {
	path string
	stat unix.Stat_t
}

// below makes dir hold what the directories from hold. No symbolic link that was made is followed: all names
// above dir are known as directories.
func (l *linker) below(ctx context.Context, dir string, from []string) error {
	to, err := os.Open(dir)
	if err != nil {
		return err
	}
	names, deeper := map[string]*linked{}, map[string][]string{}
	for _, path := range from {
		if err = l.add(ctx, to, path, names, deeper); err != nil {
			break
		}
	}
	to.Close() // before what is deeper is opened
	if err != nil {
		return err
	}
	for name, from := range deeper {
		do := func() error { return l.below(ctx, filepath.Join(dir, name), from) }
		if l.work.TryGo(do) {
			continue
		}
		if err := do(); err != nil {
			return err
		}
	}
	return nil
}

// add links what is in the directory path, of which names are there already. Directories are made, and added to deeper.
func (l *linker) add(ctx context.Context, to *os.File, path string, names map[string]*linked, deeper map[string][]string) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	from, err := os.Open(path)
	if err != nil {
		return err
	}
	defer from.Close()
	all, err := from.Readdirnames(-1)
	if err != nil {
		return err
	}
	for _, name := range all {
		found := &linked{path: filepath.Join(path, name)}
		// The kernel need not find the way to the directories for each file, which takes as long as linking it.
		err := retry(func() error { return unix.Fstatat(int(from.Fd()), name, &found.stat, unix.AT_SYMLINK_NOFOLLOW) })
		if err != nil {
			return &os.PathError{Op: "stat", Path: found.path, Err: err}
		}
		if first := names[name]; first == nil {
			names[name] = found
			err = l.link(to, from, name, found)
		} else {
			var same bool
			if same, err = alike(first, found); err == nil && !same {
				name, _ := filepath.Rel(l.dir, filepath.Join(to.Name(), name)) // it is below
				err = fmt.Errorf("%s is in two packages: %w", name, ErrConflict)
			}
		}
		if err != nil {
			return err
		}
		if found.kind() == unix.S_IFDIR {
			deeper[name] = append(deeper[name], found.path)
		}
	}
	return nil
}

func (n *linked) kind() uint32 { return uint32(n.stat.Mode) & unix.S_IFMT }

// link links what is there for the first time.
func (l *linker) link(to, from *os.File, name string, found *linked) error {
	if n := l.names.Add(1); l.o.MaxFiles > 0 && n > l.o.MaxFiles {
		return fmt.Errorf("%w: more than %d files", tarcheck.ErrTooLarge, l.o.MaxFiles)
	}
	target := filepath.Join(to.Name(), name)
	switch found.kind() {
	case unix.S_IFDIR:
		return os.Mkdir(target, 0o755)
	case unix.S_IFREG:
		if n := l.bytes.Add(found.stat.Size); l.o.MaxBytes > 0 && n > l.o.MaxBytes {
			return fmt.Errorf("%w: more than %d bytes", tarcheck.ErrTooLarge, l.o.MaxBytes)
		}
		if err := retry(func() error { return unix.Linkat(int(from.Fd()), name, int(to.Fd()), name, 0) }); err != nil {
			return &os.LinkError{Op: "link", Old: found.path, New: target, Err: err}
		}
		return nil
	}
	text, err := os.Readlink(found.path) // what is no link fails here
	if err != nil {
		return err
	}
	return os.Symlink(text, target)
}

// retry makes a system call again that a signal has interrupted, as package os does.
func retry(call func() error) error {
	for {
		if err := call(); err != unix.EINTR {
			return err
		}
	}
}

// alike reports whether two things of one name are the same.
func alike(a, b *linked) (bool, error) {
	switch {
	case a.stat.Mode != b.stat.Mode:
		return false, nil
	case a.kind() == unix.S_IFDIR:
		return true, nil
	case a.kind() == unix.S_IFREG:
		if a.stat.Size != b.stat.Size {
			return false, nil
		}
		return alikeFiles(a.path, b.path)
	}
	one, aerr := os.Readlink(a.path)
	other, berr := os.Readlink(b.path)
	return one == other, errors.Join(aerr, berr)
}

func alikeFiles(first, second string) (bool, error) {
	a, err := os.Open(first)
	if err != nil {
		return false, err
	}
	defer a.Close()
	b, err := os.Open(second)
	if err != nil {
		return false, err
	}
	defer b.Close()
	var one, two [64 << 10]byte
	for {
		n, err := io.ReadFull(a, one[:])
		m, berr := io.ReadFull(b, two[:])
		if !bytes.Equal(one[:n], two[:m]) {
			return false, nil
		}
		if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
			return true, nil
		}
		if err = errors.Join(err, berr); err != nil {
			return false, err
		}
	}
}
