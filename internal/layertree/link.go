package layertree

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"

	"golang.org/x/sync/errgroup"

	"github.com/llmsandbox/llmsandbox/internal/tarcheck"
)

// ErrConflict: two directories have different things of one name.
var ErrConflict = errors.New("they differ")

// Link makes dir, which is empty, hold what several directories hold. Files are hard links, which take no space, so
// nobody may write to them. A name that is in two directories must be a directory in both, or the same file.
func Link(ctx context.Context, dir string, o Options, from ...string) error {
	work, ctx := errgroup.WithContext(ctx)
	work.SetLimit(2 * runtime.NumCPU())
	l := linker{work: work, dir: dir, o: o, origin: map[string]string{}}
	var err error
	for _, root := range from {
		if err = l.below(ctx, root); err != nil {
			break
		}
	}
	if werr := work.Wait(); werr != nil {
		err = werr // it ended the context
	}
	return err
}

type linker struct {
	work   *errgroup.Group
	dir    string
	o      Options
	origin map[string]string // of names that were linked, where they are
	bytes  int64
}

func (l *linker) below(ctx context.Context, root string) error {
	return filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err == nil {
			err = ctx.Err()
		}
		if err != nil || path == root {
			return err
		}
		name, err := filepath.Rel(root, path)
		if err != nil {
			return err
		}
		// No link that was made here is followed: all names above this one are known as directories.
		if first, twice := l.origin[name]; twice {
			return alike(first, path, name, d)
		}
		if l.origin[name] = path; l.o.MaxFiles > 0 && int64(len(l.origin)) > l.o.MaxFiles {
			return fmt.Errorf("%w: more than %d files", tarcheck.ErrTooLarge, l.o.MaxFiles)
		}
		to := filepath.Join(l.dir, name)
		switch {
		case d.IsDir():
			return os.Mkdir(to, 0o755)
		case d.Type().IsRegular():
			info, err := d.Info()
			if err != nil {
				return err
			}
			if l.bytes += info.Size(); l.o.MaxBytes > 0 && l.bytes > l.o.MaxBytes {
				return fmt.Errorf("%w: more than %d bytes", tarcheck.ErrTooLarge, l.o.MaxBytes)
			}
			l.work.Go(func() error { return os.Link(path, to) })
			return nil
		}
		target, err := os.Readlink(path) // what is no link fails here
		if err != nil {
			return err
		}
		return os.Symlink(target, to)
	})
}

// alike fails if two things of one name differ.
func alike(first, second, name string, d fs.DirEntry) error {
	a, err := os.Lstat(first)
	if err != nil {
		return err
	}
	b, err := d.Info()
	if err != nil {
		return err
	}
	same := a.Mode() == b.Mode()
	switch {
	case !same || a.IsDir():
	case a.Mode().IsRegular():
		if same = a.Size() == b.Size(); same {
			same, err = alikeFiles(first, second)
		}
	default:
		var targets [2]string
		for i, path := range []string{first, second} {
			var rerr error
			targets[i], rerr = os.Readlink(path)
			err = errors.Join(err, rerr)
		}
		same = targets[0] == targets[1]
	}
	if err == nil && !same {
		err = fmt.Errorf("%s is in two packages: %w", name, ErrConflict)
	}
	return err
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
