//go:build linux

// Package diskuse counts what directories take on their disks, whatever code that owns them does to them.
package diskuse

import (
	"fmt"
	"slices"
	"strconv"

	"golang.org/x/sys/unix"
)

// A Usage is what files take.
type Usage struct {
	Bytes uint64 // that are allocated: holes take none
	Files uint64 // of any kind, each once however many names it has
}

// Exceeds reports whether u is more than most in one of the two.
func (u Usage) Exceeds(most Usage) bool { return u.Bytes > most.Bytes || u.Files > most.Files }

// maxOpen is how many directories of one path a count holds open.
const maxOpen = 32

// maxMoved is how often a count finds back after code has moved a directory that it is in.
const maxMoved = 64

// A Meter counts what is in directories. It is for one goroutine.
type Meter struct {
	roots  []int
	uid    uint32
	stop   Usage // no more is counted than this and a little
	force  bool
	used   Usage
	linked map[inode]struct{} // counted files that have another name or none
	path   []dir              // from a root to where the count is
	moved  int                // how often code has moved one of those
	buf    []byte
}

type inode struct{ device, number uint64 }

func idOf(st *unix.Stat_t) inode { return inode{st.Dev, st.Ino} }

// A dir is a directory that a count is in.
type dir struct {
	fd   int // -1: to be opened again from the one below
	id   inode
	name string   // in the directory above
	dirs []string // those in it that are still to be counted
}

// New returns a meter of what a user has in directories. It opens them, so that what takes their place later is not what is counted.
func New(dirs []string, uid uint32) (*Meter, error) {
	m := &Meter{uid: uid, buf: make([]byte, 32<<10)}
	for _, name := range dirs {
		fd, err := unix.Open(name, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
		if err != nil {
			return nil, fmt.Errorf("open %s, whose size is limited: %w", name, err)
		}
		m.roots = append(m.roots, fd)
	}
	return m, nil
}

// Free is how much the file systems of the directories have left, for all users of the machine.
func (m *Meter) Free() (free Usage) {
	var seen []unix.Fsid
	for _, fd := range m.roots {
		var st unix.Statfs_t
		if err := unix.Fstatfs(fd, &st); err != nil || slices.Contains(seen, st.Fsid) {
			continue
		}
		seen = append(seen, st.Fsid)
		free.Bytes += st.Bfree * uint64(st.Frsize)
		free.Files += st.Ffree
	}
	return free
}

// Count counts what the directories take, or once it is more than stop, that much at least. Code may change them
// meanwhile: then it is what each took when it was looked at. A directory that its owner may not read is left
// out, or with force made readable.
func (m *Meter) Count(stop Usage, force bool) Usage {
	m.stop, m.force, m.used, m.linked, m.moved = stop, force, Usage{}, map[inode]struct{}{}, 0
	for _, root := range m.roots {
		m.countRoot(root)
	}
	return m.used
}

// Used is what was counted last.
func (m *Meter) Used() Usage { return m.used }

// AddOpen adds to the last count what open files take whose names were removed: the user's, among the
// descriptors in a directory of /proc.
func (m *Meter) AddOpen(proc int, path string) {
	fd, err := unix.Openat(proc, path, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return
	}
	defer unix.Close(fd)
	m.list(fd, func(name string) {
		var st unix.Stat_t
		if err := unix.Fstatat(fd, name, &st, 0); err == nil && st.Mode&unix.S_IFMT == unix.S_IFREG && st.Nlink == 0 && st.Uid == m.uid {
			m.add(&st)
		}
	})
}

func (m *Meter) countRoot(root int) {
	fd, st, err := m.open(root, ".")
	if err != nil {
		return
	}
	m.add(&st)
	m.push(fd, &st, ".")
	for len(m.path) > 0 && !m.used.Exceeds(m.stop) {
		d := &m.path[len(m.path)-1]
		if len(d.dirs) == 0 {
			m.pop(root)
			continue
		}
		name := d.dirs[len(d.dirs)-1]
		d.dirs = d.dirs[:len(d.dirs)-1]
		// What cannot be opened is not there any more, or its owner may not read it.
		if fd, st, err := m.open(d.fd, name); err == nil {
			m.push(fd, &st, name)
		}
	}
	for _, d := range m.path {
		if d.fd >= 0 {
			unix.Close(d.fd)
		}
	}
	m.path = m.path[:0]
}

// open opens a directory for reading.
func (m *Meter) open(at int, name string) (fd int, st unix.Stat_t, err error) {
	fd, st, err = openDir(at, name, unix.O_RDONLY)
	// Reading it without searching it tells the names of what is in it alone.
	const rx = unix.S_IRUSR | unix.S_IXUSR
	if !m.force || err != unix.EACCES && (err != nil || st.Uid != m.uid || st.Mode&rx == rx) {
		return fd, st, err
	}
	if err == nil {
		unix.Close(fd)
	}
	if fd, st, err = openDir(at, name, unix.O_PATH); err != nil {
		return -1, st, err
	}
	defer unix.Close(fd)
	// Not by its name, in whose place code may have put another's.
	if err = unix.Chmod("/proc/self/fd/"+strconv.Itoa(fd), st.Mode&0o7777|rx); err != nil {
		return -1, st, err
	}
	return openDir(fd, ".", unix.O_RDONLY)
}

func openDir(at int, name string, flags int) (fd int, st unix.Stat_t, err error) {
	if fd, err = unix.Openat(at, name, flags|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0); err != nil {
		return -1, st, err
	}
	if err = unix.Fstat(fd, &st); err != nil {
		unix.Close(fd)
		return -1, st, err
	}
	return fd, st, nil
}

// push enters a directory and counts what is in it, but not what is in directories there.
func (m *Meter) push(fd int, st *unix.Stat_t, name string) {
	if n := len(m.path) - maxOpen; n >= 0 && m.path[n].fd >= 0 {
		unix.Close(m.path[n].fd)
		m.path[n].fd = -1
	}
	d := dir{fd: fd, id: idOf(st), name: name}
	m.list(fd, func(name string) {
		var st unix.Stat_t
		if err := unix.Fstatat(fd, name, &st, unix.AT_SYMLINK_NOFOLLOW|unix.AT_NO_AUTOMOUNT); err != nil {
			return // it is not there any more
		}
		m.add(&st)
		if st.Mode&unix.S_IFMT == unix.S_IFDIR {
			d.dirs = append(d.dirs, name)
		}
	})
	m.path = append(m.path, d)
}

// pop goes back up.
func (m *Meter) pop(root int) {
	n := len(m.path) - 1
	below := m.path[n].fd
	m.path = m.path[:n]
	if n > 0 && m.path[n-1].fd < 0 {
		fd, st, err := openDir(below, "..", unix.O_RDONLY)
		if err == nil && idOf(&st) == m.path[n-1].id {
			m.path[n-1].fd = fd
		} else {
			if err == nil {
				unix.Close(fd)
			}
			m.regain(root)
		}
	}
	unix.Close(below)
}

// regain goes to the last directory of the path by the names that led to it, or as far as they still do, after code has moved
// one of them. What is left in those is counted next time.
func (m *Meter) regain(root int) {
	at := root
	for i := range m.path {
		d := &m.path[i]
		fd, st, err := openDir(at, d.name, unix.O_RDONLY)
		if err == nil && (idOf(&st) != d.id || m.moved == maxMoved) {
			unix.Close(fd)
			err = unix.ENOENT
		}
		if err != nil {
			m.path = m.path[:i]
			break
		}
		if i > 0 {
			unix.Close(at)
			m.path[i-1].fd = -1
		}
		at, d.fd = fd, fd
	}
	m.moved++
}

// list calls visit for all names in a directory, until there is too much in it.
func (m *Meter) list(fd int, visit func(name string)) {
	for !m.used.Exceeds(m.stop) {
		n, err := unix.Getdents(fd, m.buf)
		if err != nil || n <= 0 {
			return
		}
		_, _, names := unix.ParseDirent(m.buf[:n], -1, nil)
		for _, name := range names {
			visit(name)
		}
	}
}

// add counts a file, once.
func (m *Meter) add(st *unix.Stat_t) {
	if st.Mode&unix.S_IFMT != unix.S_IFDIR && st.Nlink != 1 {
		id := idOf(st)
		if _, counted := m.linked[id]; counted {
			return
		}
		m.linked[id] = struct{}{}
	}
	m.used.Files++
	m.used.Bytes += uint64(st.Blocks) * 512
}
