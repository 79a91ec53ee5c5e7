//go:build linux

package files

import (
	"archive/tar"
	"os"

	"golang.org/x/sys/unix"

	"github.com/llmsandbox/llmsandbox/internal/agentproto"
	"github.com/llmsandbox/llmsandbox/internal/tarcheck"
)

// A layer is what was written to an overlay that is the root. nil is none.
type layer struct{ root int }

// describe adds to a directory's header what it means in a layer.
func (l *layer) describe(h *tar.Header, dir *os.File, st *unix.Stat_t) {
	if l == nil {
		return
	}
	h.Mode = int64(st.Mode & 0o1777)
	var value [1]byte
	if n, err := unix.Fgetxattr(int(dir.Fd()), "user.overlay.opaque", value[:]); err == nil && n == 1 && value[0] == 'y' {
		h.PAXRecords = map[string]string{tarcheck.OpaqueRecord: "y"}
	}
}

// hidden reports whether something is mounted on a directory of the layer: what the layer has
// of it is not seen, and it may be there only to be mounted on.
func (l *layer) hidden(name string) bool {
	if l == nil {
		return false
	}
	fd, err := openat2(l.root, name, unix.O_PATH|unix.O_DIRECTORY, 0, beneath)
	if err == nil {
		unix.Close(fd)
	}
	return err == unix.EXDEV
}

// deleted reports whether an entry of the layer stands for a name that was deleted.
func (l *layer) deleted(st *unix.Stat_t) bool {
	return l != nil && st.Mode&unix.S_IFMT == unix.S_IFCHR && st.Rdev == 0
}

func (s *Service) serveTarLayer(call *job) error {
	if s.layer == 0 {
		return agentproto.Errorf(agentproto.CodeUnsupported, "the root file system cannot be written to")
	}
	fd, err := openat2(s.layer, ".", dirFlags, 0, beneath)
	if err != nil {
		return pathError("archive", "/", err)
	}
	top := os.NewFile(uintptr(fd), "/")
	defer top.Close()
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return pathError("archive", "/", err)
	}
	return archive(call, &archiver{links: true, layer: &layer{s.root}}, top, "/", "", &st)
}
