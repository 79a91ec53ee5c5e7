//go:build linux

package files

import (
	"archive/tar"
	"maps"
	"os"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/llmsandbox/llmsandbox/internal/agentproto"
	"github.com/llmsandbox/llmsandbox/internal/tarcheck"
)

// A layer is what was written to an overlay of the root. nil is none.
type layer struct {
	root   int    // the overlay
	prefix string // of the names in it: "usr/"; "" for the root itself
}

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
	fd, err := openat2(l.root, strings.TrimPrefix(name, l.prefix), unix.O_PATH|unix.O_DIRECTORY, 0, beneath)
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
	if len(s.layers) == 0 {
		return agentproto.Errorf(agentproto.CodeUnsupported, "the root file system cannot be written to")
	}
	return archive(call, &archiver{links: true}, "/", func(a *archiver) error {
		for _, path := range slices.Sorted(maps.Keys(s.layers)) {
			if err := s.tarLayer(a, path); err != nil {
				return err
			}
		}
		return nil
	})
}

// tarLayer archives what was written to the overlay that is mounted at a path, without a header for the path itself.
func (s *Service) tarLayer(a *archiver, path string) error {
	root, err := s.open(path, unix.O_PATH|unix.O_DIRECTORY, 0)
	if err != nil {
		return err
	}
	defer unix.Close(root)
	fd, err := openat2(s.layers[path], ".", dirFlags, 0, beneath)
	if err != nil {
		return err
	}
	top := os.NewFile(uintptr(fd), path)
	defer top.Close()
	a.layer = &layer{root: root}
	if path != "/" {
		a.layer.prefix = strings.TrimPrefix(path, "/") + "/"
	}
	return a.entries(top, a.layer.prefix, 0)
}
