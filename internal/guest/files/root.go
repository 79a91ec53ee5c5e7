//go:build linux

package files

import (
	"archive/tar"
	"os"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/llmsandbox/llmsandbox/internal/agentproto"
)

// A tree is the root file system with all that is in it, as [agentproto.TarRootRequest] says. nil is none.
type tree struct {
	// since is before any code ran. Code cannot set when the status of a file has changed, only a clock that
	// is set back could: then the file differs in other ways, for those who compare it.
	since  time.Time
	mounts map[string]bool // what something is mounted on, by its name without the first slash
}

// describe adds to a header what only matters for the root: the owner.
func (t *tree) describe(h *tar.Header, st *unix.Stat_t) {
	if t == nil {
		return
	}
	h.Uid, h.Gid = int(st.Uid), int(st.Gid)
	if h.Typeflag == tar.TypeDir {
		h.Mode = int64(st.Mode & 0o1777)
	}
}

// untold archives that a name is there, and nothing more.
func (t *tree) untold(a *archiver, name string) error {
	if t == nil {
		return nil
	}
	if name == "" { // else all that is missing would be taken for deleted
		return agentproto.Errorf(agentproto.CodeInternal, "the root directory cannot be listed")
	}
	_, err := a.header(&tar.Header{Typeflag: tar.TypeFifo, Name: name})
	return err
}

// told archives what need not be opened, and reports whether that was all.
func (t *tree) told(a *archiver, name string, st *unix.Stat_t) (bool, error) {
	if t == nil {
		return false, nil
	}
	if t.mounts[name] {
		return true, t.untold(a, name)
	}
	if st.Mode&unix.S_IFMT != unix.S_IFREG || !time.Unix(st.Ctim.Unix()).Before(t.since) {
		return false, nil
	}
	h := &tar.Header{Typeflag: tar.TypeBlock, Name: name, Size: st.Size, Mode: int64(st.Mode & 0o777), ModTime: modTime(st)}
	t.describe(h, st)
	_, err := a.header(h)
	return true, err
}

// mountPoints are the names that something is mounted on. The kernel tells them in every sandbox; devices differ where nothing is
// mounted, in overlays.
func mountPoints() (map[string]bool, error) {
	list, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return nil, err
	}
	points := map[string]bool{}
	for line := range strings.Lines(string(list)) {
		if fields := strings.Fields(line); len(fields) > 4 {
			points[strings.TrimPrefix(unescape(fields[4]), "/")] = true
		}
	}
	return points, nil
}

// unescape takes back what the kernel writes in place of white space and backslashes: a backslash and three octal digits.
func unescape(s string) string {
	var b strings.Builder
	for len(s) > 0 {
		if s[0] == '\\' && len(s) >= 4 {
			if n, err := strconv.ParseUint(s[1:4], 8, 8); err == nil {
				b.WriteByte(byte(n))
				s = s[4:]
				continue
			}
		}
		b.WriteByte(s[0])
		s = s[1:]
	}
	return b.String()
}

// clockStep is how much later a file may have changed than its time says: the kernel's coarse clock stands still for a while.
const clockStep = time.Second

func (s *Service) serveTarRoot(call *job) error {
	var req agentproto.TarRootRequest
	if err := call.Request(&req); err != nil {
		return err
	}
	fd, err := openat2(s.root, ".", dirFlags, 0, beneath)
	if err != nil {
		return pathError("archive", "/", err)
	}
	top := os.NewFile(uintptr(fd), "/")
	defer top.Close()
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return pathError("archive", "/", err)
	}
	mounts, err := mountPoints()
	if err != nil {
		return pathError("archive", "/", err)
	}
	t := &tree{mounts: mounts}
	if !req.All {
		t.since = s.started.Add(-clockStep)
	}
	return archive(call, &archiver{links: true, root: t}, "/", func(a *archiver) error { return a.directory(top, "", &st, 0) })
}
