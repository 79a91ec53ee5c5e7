package hostroot

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// ErrChanged is the error of Digests for directories that were written to.
var ErrChanged = errors.New("has changed on the host")

// tick is more than by how much the clock of file systems is behind.
const tick = 20 * time.Millisecond

// maxDigestDepth bounds how many directories are open within each other.
const maxDigestDepth = 128

// Digests returns a digest of each directory of a root, by its target. It covers the directory's names, kinds, modes, sizes, times
// of files, and links, but nothing that others may not read, which no sandbox shows, and no __pycache__, which programs write whenever they
// run. The skeleton, at "/", is made by this package: there, the contents of files count in place of their times. Digests fails with ErrChanged if anything but
// the skeleton has changed since a time, unless that is zero.
func Digests(ctx context.Context, root []Bind, since time.Time) (map[string]string, error) {
	all := map[string]string{}
	for _, b := range root {
		d := digester{ctx: ctx, inside: b.Target, contents: b.Target == "/", free: make(chan struct{}, runtime.GOMAXPROCS(0)-1)}
		if !d.contents && !since.IsZero() {
			d.since = since.Add(-tick).UnixNano()
		}
		sum, err := d.top(b.Source)
		if err != nil {
			return nil, err
		}
		all[b.Target] = hex.EncodeToString(sum)
	}
	return all, nil
}

// A digester makes the digest of one directory.
type digester struct {
	ctx      context.Context
	inside   string // what it is called in a sandbox
	contents bool
	since    int64         // in nanoseconds; 0: whenever
	free     chan struct{} // takes one for each goroutine
}

func (d *digester) top(dir string) ([]byte, error) {
	fd, err := unix.Open(dir, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, d.failed("", err)
	}
	top := os.NewFile(uintptr(fd), dir)
	var st unix.Stat_t
	if err = unix.Fstat(fd, &st); err == nil && d.since != 0 && st.Ctim.Nano() >= d.since {
		err = fmt.Errorf("%s %w", d.inside, ErrChanged)
	}
	if err != nil {
		return nil, errors.Join(err, top.Close())
	}
	return d.directory(top, "", 0)
}

// An entry of a directory. One that does not count has no line.
type entry struct {
	line []byte
	sum  []byte
	err  error
}

// directory returns the digest of a directory, which it closes. name is relative to the top.
func (d *digester) directory(dir *os.File, name string, depth int) ([]byte, error) {
	defer dir.Close()
	if err := d.ctx.Err(); err != nil {
		return nil, context.Cause(d.ctx)
	}
	names, err := dir.Readdirnames(-1)
	if err != nil {
		return nil, d.failed(name, err)
	}
	slices.Sort(names)
	entries := make([]entry, len(names))
	var others sync.WaitGroup
	for i, base := range names {
		if base == "__pycache__" {
			continue
		}
		if err = d.entry(&others, &entries[i], int(dir.Fd()), base, path.Join(name, base), depth); err != nil {
			break
		}
	}
	others.Wait()
	sum := sha256.New()
	for _, e := range entries {
		if err == nil {
			err = e.err
		}
		if len(e.line) > 0 { // else it does not count
			sum.Write(append(append(e.line, e.sum...), '\n'))
		}
	}
	return sum.Sum(nil), err
}

// entry describes one entry. Below a directory, it may do so in another goroutine.
func (d *digester) entry(others *sync.WaitGroup, e *entry, at int, base, name string, depth int) error {
	var st unix.Stat_t
	err := unix.Fstatat(at, base, &st, unix.AT_SYMLINK_NOFOLLOW)
	if err == unix.ENOENT {
		return nil // it has just gone
	}
	if err != nil {
		return d.failed(name, err)
	}
	kind := st.Mode & unix.S_IFMT
	if kind == unix.S_IFDIR && st.Mode&0o5 != 0o5 || kind != unix.S_IFDIR && kind != unix.S_IFLNK && st.Mode&0o4 == 0 {
		return nil
	}
	if d.since != 0 && st.Ctim.Nano() >= d.since {
		return fmt.Errorf("%s %w", path.Join(d.inside, name), ErrChanged)
	}
	e.line = strconv.AppendQuote(make([]byte, 0, 128), base)
	number := func(n int64) { e.line = strconv.AppendInt(append(e.line, ' '), n, 10) }
	number(int64(st.Mode & (unix.S_IFMT | 0o777)))
	switch kind {
	case unix.S_IFREG:
		number(st.Size)
		if !d.contents {
			number(st.Mtim.Nano())
			return nil
		}
		e.sum, err = fileDigest(at, base)
	case unix.S_IFLNK:
		target := make([]byte, unix.PathMax)
		var n int
		n, err = unix.Readlinkat(at, base, target)
		e.line = strconv.AppendQuote(append(e.line, ' '), string(target[:max(n, 0)]))
	case unix.S_IFDIR:
		if depth == maxDigestDepth {
			return d.failed(name, errors.New("too many directories within each other"))
		}
		var fd int
		if fd, err = unix.Openat(at, base, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0); err != nil {
			break
		}
		below := os.NewFile(uintptr(fd), base)
		select {
		case d.free <- struct{}{}:
			others.Go(func() {
				defer func() { <-d.free }()
				e.sum, e.err = d.directory(below, name, depth+1)
			})
			return nil
		default:
			e.sum, err = d.directory(below, name, depth+1)
			return err
		}
	}
	if err != nil {
		return d.failed(name, err)
	}
	return nil
}

func (d *digester) failed(name string, err error) error {
	return fmt.Errorf("look at the host's files: %s: %w", path.Join(d.inside, name), err)
}

func fileDigest(at int, base string) ([]byte, error) {
	fd, err := unix.Openat(at, base, unix.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	f := os.NewFile(uintptr(fd), base)
	defer f.Close()
	sum := sha256.New()
	_, err = io.Copy(sum, f)
	return sum.Sum(nil), err
}

// Differing returns the targets of which two roots have other files, by their digests.
func Differing(one, other map[string]string) []string {
	var targets []string
	for _, m := range []map[string]string{one, other} {
		for target := range m {
			a, here := one[target]
			if b, there := other[target]; (a != b || here != there) && !slices.Contains(targets, target) {
				targets = append(targets, target)
			}
		}
	}
	slices.SortFunc(targets, strings.Compare)
	return targets
}
