//go:build linux

// Package seed makes a directory that cannot be written to usable as one that can: a
// second tree with directories of its own, whose files are symbolic links to the first
// one's. What is prepared once, such as a compiler's cache, then serves every sandbox
// without being copied, and without an overlay, which needs rights that a container
// does not give.
package seed

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"iter"
	"path"
	"strings"
	"unsafe"

	"golang.org/x/sys/unix"
)

const (
	// maxDepth bounds how deep directories may lie in each other.
	maxDepth = 64
	// maxEntries bounds files and directories together: each costs memory that the
	// sandbox is charged for.
	maxEntries = 1 << 18
)

// A Pair is a directory and where its tree of links appears.
type Pair struct {
	Source string // absolute path of a directory
	Target string // absolute path; made with all above it
}

// Parse parses SOURCE=TARGET.
func Parse(s string) (Pair, error) {
	source, target, ok := strings.Cut(s, "=")
	if !ok || !path.IsAbs(source) || !path.IsAbs(target) {
		return Pair{}, errors.New("not two absolute paths SOURCE=TARGET")
	}
	return Pair{Source: path.Clean(source), Target: path.Clean(target)}, nil
}

// Plant makes the tree of links. What exists in the target already stays as it is.
func (p Pair) Plant() error {
	w := &walk{buf: make([]byte, 64<<10)}
	err := w.plant(p)
	if err != nil {
		return fmt.Errorf("link the files of %s into %s: %w", p.Source, p.Target, err)
	}
	return nil
}

type walk struct {
	buf     []byte
	entries int
}

func (w *walk) plant(p Pair) error {
	from, err := unix.Open(p.Source, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("open the source: %w", err)
	}
	defer unix.Close(from)
	to, err := makeAll(p.Target)
	if err != nil {
		return fmt.Errorf("make the target: %w", err)
	}
	defer unix.Close(to)
	return w.directory(from, to, p.Source, 0)
}

// directory links the entries of one directory, and then those of the directories in it.
func (w *walk) directory(from, to int, source string, depth int) error {
	if depth == maxDepth {
		return fmt.Errorf("more than %d directories in each other", maxDepth)
	}
	var directories []string
	for {
		n, err := unix.Getdents(from, w.buf)
		if err != nil {
			return fmt.Errorf("read %s: %w", source, err)
		}
		if n <= 0 {
			break
		}
		for entry, kind := range entries(w.buf[:n]) {
			if w.entries++; w.entries > maxEntries {
				return fmt.Errorf("more than %d files", maxEntries)
			}
			if kind == unix.DT_UNKNOWN {
				if kind, err = kindOf(from, entry); err != nil {
					return fmt.Errorf("look at %s/%s: %w", source, entry, err)
				}
			}
			if kind == unix.DT_DIR {
				directories = append(directories, entry)
				continue
			}
			if err := unix.Symlinkat(source+"/"+entry, to, entry); err != nil && err != unix.EEXIST {
				return fmt.Errorf("link %s/%s: %w", source, entry, err)
			}
		}
	}
	for _, name := range directories {
		if err := w.enter(from, to, source, name, depth); err != nil {
			return err
		}
	}
	return nil
}

func (w *walk) enter(from, to int, source, name string, depth int) error {
	source += "/" + name
	sub, err := unix.Openat(from, name, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("open %s: %w", source, err)
	}
	defer unix.Close(sub)
	made, err := makeDir(to, name)
	if err != nil {
		return fmt.Errorf("make the directory of %s: %w", source, err)
	}
	defer unix.Close(made)
	return w.directory(sub, made, source, depth+1)
}

// makeAll makes a directory and all above it, and opens it.
func makeAll(target string) (int, error) {
	fd, err := unix.Open("/", unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	for _, name := range strings.Split(strings.Trim(target, "/"), "/") {
		if err != nil || name == "" {
			break
		}
		above := fd
		fd, err = makeDir(above, name)
		unix.Close(above)
	}
	return fd, err
}

// makeDirectory makes a directory, unless it exists, and opens it.
func makeDir(in int, name string) (int, error) {
	err := unix.Mkdirat(in, name, 0o755)
	fd, oerr := unix.Openat(in, name, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if oerr != nil && err != nil && err != unix.EEXIST {
		return -1, fmt.Errorf("%s: %w", name, err)
	}
	return fd, oerr
}

// entries are the names and kinds in a buffer that getdents64 filled, without "." and
// "..". The kinds, which package unix does not give, save a look at every file.
func entries(buf []byte) iter.Seq2[string, uint8] {
	const (
		lengthAt = int(unsafe.Offsetof(unix.Dirent{}.Reclen))
		kindAt   = int(unsafe.Offsetof(unix.Dirent{}.Type))
		nameAt   = int(unsafe.Offsetof(unix.Dirent{}.Name))
	)
	return func(yield func(string, uint8) bool) {
		for len(buf) > nameAt {
			size := int(binary.NativeEndian.Uint16(buf[lengthAt:]))
			if size <= nameAt || size > len(buf) {
				return
			}
			name, _, _ := bytes.Cut(buf[nameAt:size], []byte{0})
			kind := buf[kindAt]
			buf = buf[size:]
			if string(name) == "." || string(name) == ".." {
				continue
			}
			if !yield(string(name), kind) {
				return
			}
		}
	}
}

// kindOf is for file systems that do not tell kinds in their directories.
func kindOf(in int, name string) (uint8, error) {
	var st unix.Stat_t
	if err := unix.Fstatat(in, name, &st, unix.AT_SYMLINK_NOFOLLOW); err != nil {
		return 0, err
	}
	if st.Mode&unix.S_IFMT == unix.S_IFDIR {
		return unix.DT_DIR, nil
	}
	return unix.DT_REG, nil
}
