//go:build linux

package files

import (
	"archive/tar"
	"bufio"
	"fmt"
	"os"

	"golang.org/x/sys/unix"

	"github.com/llmsandbox/llmsandbox/internal/agentproto"
)

const (
	maxSkipped = 100
	// maxTarDepth is how many directories a walk holds open at once.
	maxTarDepth = 200
	dirFlags    = unix.O_RDONLY | unix.O_DIRECTORY | unix.O_NOFOLLOW
	readFlags   = unix.O_RDONLY | unix.O_NOFOLLOW | unix.O_NONBLOCK | unix.O_NOCTTY
)

// skipped names what was left out. It is bounded, so that it fits into a message.
type skipped []string

func (s *skipped) add(name, why string) {
	if len(*s) >= maxSkipped {
		return
	}
	if len(name) > maxPath {
		name = "..." + name[len(name)-maxPath:]
	}
	*s = append(*s, fmt.Sprintf("%q: %s", name, why))
}

func (s *Service) serveTarOut(call *job) error {
	var req agentproto.TarOutRequest
	if err := call.Request(&req); err != nil {
		return err
	}
	p, err := s.absolute(req.Path)
	if err != nil {
		return err
	}
	fd, err := s.open(p, readFlags, 0)
	if err != nil {
		return pathError("archive", req.Path, err)
	}
	top := os.NewFile(uintptr(fd), p)
	defer top.Close()
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return pathError("archive", req.Path, err)
	}
	if err := mayServe(fd); err != nil {
		return pathError("archive", req.Path, err)
	}
	out := bufio.NewWriterSize(output{call}, agentproto.MaxFrame)
	a := archiver{links: req.Links, out: out, tw: tar.NewWriter(out), buf: make([]byte, agentproto.MaxFrame)}
	switch st.Mode & unix.S_IFMT {
	case unix.S_IFREG:
		err = a.file(top, req.Prefix, &st)
	case unix.S_IFDIR:
		err = a.folder(top, req.Prefix, &st, 0)
	default:
		err = unix.ENXIO
	}
	if err == nil {
		err = a.tw.Close()
	}
	if err == nil {
		err = out.Flush()
	}
	if err != nil {
		return pathError("archive", req.Path, err)
	}
	if err := call.CloseWrite(agentproto.ChanOut); err != nil {
		return err
	}
	return call.End(&agentproto.TarResult{Files: a.files, Bytes: a.bytes, Skipped: a.skipped})
}
