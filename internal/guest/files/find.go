//go:build linux

package files

import (
	"errors"
	"io"
	"os"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/llmsandbox/llmsandbox/internal/agentproto"
)

// Bounds of one search, so that no tree holds it up for long.
const (
	maxFindDepth   = 32
	maxFindEntries = 50000
	maxFound       = 4096
	maxFoundBytes  = 1 << 20
)

func (s *Service) serveFind(call *job) error {
	var req agentproto.FindRequest
	if err := call.Request(&req); err != nil {
		return err
	}
	var clock unix.Timespec
	// The clock that the kernel stamps files with: others run ahead of it.
	if err := unix.ClockGettime(unix.CLOCK_REALTIME_COARSE, &clock); err != nil {
		return pathError("look at the clock before the search in", strings.Join(req.Directories, ", "), err)
	}
	f := finder{turns: s.turns, since: req.SinceNanos, stop: call.Done(), max: maxFound}
	if req.MaxFiles > 0 {
		f.max = min(f.max, int(req.MaxFiles))
	}
	f.found.NowNanos = clock.Nano()
	if f.since == 0 {
		var err error
		if f.since, err = s.changed(req.Marker); errors.Is(err, unix.ENOENT) {
			f.found.Unmarked = true
		} else if err != nil {
			return pathError("stat", req.Marker, err)
		}
	}
	used := false
	for i, directory := range req.Directories {
		if f.found.Unmarked {
			break
		}
		before := len(f.found.Files)
		f.index = uint32(i)
		if err := s.findBelow(&f, directory); err != nil {
			return pathError("search", directory, err)
		}
		if len(f.found.Files) > before && strings.HasPrefix(directory, req.Discard+"/") {
			used = true
		}
	}
	if req.Discard != "" && !used {
		if err := s.removeAll([]string{req.Discard}); err != nil {
			return err
		}
		f.found.Discarded = true
	}
	return call.End(&f.found)
}

// changed reports when a file was last changed in any way.
func (s *Service) changed(path string) (int64, error) {
	p, err := s.absolute(path)
	if err != nil {
		return 0, err
	}
	fd, err := s.open(p, unix.O_PATH|unix.O_NOFOLLOW, 0)
	if err != nil {
		return 0, err
	}
	defer unix.Close(fd)
	var st unix.Stat_t
	err = unix.Fstat(fd, &st)
	return st.Ctim.Nano(), err
}

// findBelow searches one directory. What is no directory holds nothing.
func (s *Service) findBelow(f *finder, directory string) error {
	p, err := s.absolute(directory)
	if err != nil {
		return err
	}
	fd, err := s.open(strings.TrimRight(p, "/"), dirFlags, 0)
	switch err {
	case nil:
	case unix.ENOENT, unix.ENOTDIR, unix.ELOOP, unix.EACCES:
		return nil
	default:
		return err
	}
	dir := os.NewFile(uintptr(fd), p)
	defer dir.Close()
	if err := mayServe(fd); err != nil {
		return err
	}
	f.directory(dir, "", 0)
	return nil
}

// A finder looks through trees that change meanwhile: what vanishes or cannot be
// looked at is not there.
type finder struct {
	turns   turns
	since   int64
	index   uint32
	max     int
	stop    <-chan struct{}
	entries int
	bytes   int
	found   agentproto.Found
}

func (f *finder) directory(dir *os.File, prefix string, depth int) {
	for !f.full() {
		f.turns.yield()
		names, err := dir.Readdirnames(512)
		for _, name := range names {
			if f.entries++; f.full() {
				f.found.Truncated = true
				return
			}
			f.entry(int(dir.Fd()), name, prefix, depth)
		}
		if err != nil {
			f.found.Truncated = f.found.Truncated || err != io.EOF
			return
		}
	}
}

func (f *finder) full() bool {
	select {
	case <-f.stop:
		return true
	default:
		return f.entries > maxFindEntries || len(f.found.Files) >= f.max || f.bytes > maxFoundBytes
	}
}

func (f *finder) entry(dir int, name, prefix string, depth int) {
	var st unix.Stat_t
	if err := unix.Fstatat(dir, name, &st, unix.AT_SYMLINK_NOFOLLOW); err != nil {
		return
	}
	switch st.Mode & unix.S_IFMT {
	case unix.S_IFREG:
		if st.Ctim.Nano() < f.since {
			return
		}
		f.bytes += len(prefix) + len(name) + 32
		f.found.Files = append(f.found.Files, agentproto.FoundFile{
			Directory: f.index, Path: prefix + name, Size: uint64(st.Size), CTimeNanos: st.Ctim.Nano(), Inode: st.Ino,
		})
	case unix.S_IFDIR:
		if depth >= maxFindDepth {
			f.found.Truncated = true
			return
		}
		fd, err := openat2(dir, name, dirFlags, 0, beneath)
		if err != nil {
			return
		}
		sub := os.NewFile(uintptr(fd), name)
		defer sub.Close()
		f.directory(sub, prefix+name+"/", depth+1)
	}
}
