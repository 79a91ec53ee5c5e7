//go:build linux

package files

import (
	"archive/tar"
	"bufio"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/llmsandbox/llmsandbox/internal/agentproto"
	"github.com/llmsandbox/llmsandbox/internal/guest/untar"
	"github.com/llmsandbox/llmsandbox/internal/tarcheck"
)

// archiver writes a tree as a tar stream. What cannot be read, or not be named in an
// archive, is skipped; only a failure to write the stream is an error.
type archiver struct {
	out          *bufio.Writer
	tw           *tar.Writer
	links        bool   // symbolic links are members
	layer        *layer // nil: what is archived is no layer
	root         *tree  // nil: what is archived is not the whole root
	buf          []byte
	files, bytes uint64
	skipped      skipped
}

// header writes a member's header, unless no archive can have it.
func (a *archiver) header(h *tar.Header) (ok bool, err error) {
	if err = a.tw.WriteHeader(h); err == nil {
		return true, nil
	}
	// Writing nothing shows whether it was the stream that failed: its error stays.
	if _, streamErr := a.out.Write(nil); streamErr != nil {
		return false, streamErr
	}
	a.skipped.add(h.Name, err.Error())
	return false, nil
}

// leaveOut notes that a name is not archived.
func (a *archiver) leaveOut(name, why string) error {
	a.skipped.add(name, why)
	return a.root.untold(a, name)
}

func (a *archiver) directory(dir *os.File, name string, st *unix.Stat_t, depth int) error {
	prefix := ""
	if name != "" {
		prefix = name + "/"
		h := &tar.Header{Typeflag: tar.TypeDir, Name: prefix, Mode: int64(st.Mode & 0o777), ModTime: modTime(st)}
		a.layer.describe(h, dir, st)
		a.root.describe(h, st)
		if ok, err := a.header(h); !ok {
			return err
		}
	}
	return a.entries(dir, prefix, depth)
}

// entries archives what a directory has, with names that begin with prefix.
func (a *archiver) entries(dir *os.File, prefix string, depth int) error {
	for {
		names, err := dir.Readdirnames(512)
		for _, base := range names {
			if err := a.entry(int(dir.Fd()), base, prefix+base, depth); err != nil {
				return err
			}
		}
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return a.leaveOut(strings.TrimSuffix(prefix, "/"), "the rest of the directory cannot be listed: "+reason(err))
		}
	}
}

// entry archives one entry of a directory.
func (a *archiver) entry(dir int, base, name string, depth int) error {
	var st unix.Stat_t
	if err := unix.Fstatat(dir, base, &st, unix.AT_SYMLINK_NOFOLLOW); err != nil {
		return a.leaveOut(name, reason(err))
	}
	if done, err := a.root.told(a, name, &st); done || err != nil {
		return err
	}
	flags := readFlags
	switch st.Mode & unix.S_IFMT {
	case unix.S_IFREG:
	case unix.S_IFDIR:
		if depth >= maxTarDepth {
			return a.leaveOut(name, "too many directories within each other")
		}
		if a.layer.hidden(name) {
			return nil
		}
		flags = dirFlags
	case unix.S_IFLNK:
		if a.links {
			return a.link(dir, base, name, &st)
		}
		return a.leaveOut(name, "symbolic link")
	default:
		if a.layer.deleted(&st) {
			_, err := a.header(&tar.Header{Typeflag: tar.TypeChar, Name: name})
			return err
		}
		return a.leaveOut(name, "neither a regular file nor a directory")
	}
	fd, err := openat2(dir, base, flags, 0, beneath)
	if err != nil {
		return a.leaveOut(name, reason(err))
	}
	f := os.NewFile(uintptr(fd), base)
	defer f.Close()
	if flags == dirFlags {
		if err := unix.Fstat(fd, &st); err != nil {
			return a.leaveOut(name, reason(err))
		}
		return a.directory(f, name, &st, depth+1)
	}
	if st, err = regular(fd); err != nil {
		return a.leaveOut(name, reason(err))
	}
	return a.file(f, name, &st)
}

// link archives a symbolic link as what it says.
func (a *archiver) link(dir int, base, name string, st *unix.Stat_t) error {
	target := make([]byte, maxPath)
	n, err := unix.Readlinkat(dir, base, target)
	if err != nil {
		return a.leaveOut(name, reason(err))
	}
	h := &tar.Header{Typeflag: tar.TypeSymlink, Name: name, Linkname: string(target[:n]), Mode: 0o777, ModTime: modTime(st)}
	a.root.describe(h, st)
	_, err = a.header(h)
	return err
}

// file archives a regular file at the size it has now, whatever becomes of it
// meanwhile: what cannot be read any more is zeros, and is reported.
func (a *archiver) file(f *os.File, name string, st *unix.Stat_t) error {
	h := &tar.Header{Typeflag: tar.TypeReg, Name: name, Size: st.Size, Mode: int64(st.Mode & 0o777), ModTime: modTime(st)}
	a.root.describe(h, st)
	if ok, err := a.header(h); !ok {
		return err
	}
	if st.Size >= int64(len(a.buf)) {
		// With nothing before it, each buffer goes out as one frame and uncopied.
		if err := a.out.Flush(); err != nil {
			return err
		}
	}
	damaged := false
	for left := st.Size; left > 0; {
		p := a.buf[:min(left, int64(len(a.buf)))]
		if !damaged {
			n, err := f.Read(p)
			if err != nil {
				why := "it shrank while it was read"
				if err != io.EOF {
					why = reason(err)
				}
				a.skipped.add(name, why+": the rest of it is zeros")
				damaged = true
			}
			p = p[:n]
		}
		if damaged {
			p = a.buf[:min(left, int64(len(a.buf)))]
			clear(p)
		}
		if _, err := a.tw.Write(p); err != nil {
			return err
		}
		left -= int64(len(p))
	}
	a.files++
	a.bytes += uint64(st.Size)
	return nil
}

// modTime is when a file was last written, or nothing where the code has set a time
// that the plain header cannot carry.
func modTime(st *unix.Stat_t) time.Time {
	const end = 1 << 33 // eleven octal digits
	if sec := st.Mtim.Sec; sec < 0 || sec >= end {
		return time.Time{}
	}
	return time.Unix(st.Mtim.Unix())
}

func (s *Service) serveTarIn(call *job) error {
	var req agentproto.TarInRequest
	if err := call.Request(&req); err != nil {
		return err
	}
	p, err := s.absolute(req.Dir)
	if err != nil {
		return err
	}
	if err := s.mkdirAll(p, 0o755); err != nil {
		return pathError("make directory", req.Dir, err)
	}
	fd, err := s.open(p, unix.O_PATH|unix.O_DIRECTORY, 0)
	if err != nil {
		return pathError("unpack into", req.Dir, err)
	}
	defer unix.Close(fd)
	if err := mayServe(fd); err != nil {
		return pathError("unpack into", req.Dir, err)
	}
	result, err := tarIn(input{call}, fd, &req)
	if member := (*tarcheck.MemberError)(nil); errors.As(err, &member) {
		return pathError("unpack", strings.TrimSuffix(req.Dir, "/")+"/"+member.Name, member.Err)
	}
	if err != nil {
		return pathError("unpack into", req.Dir, err)
	}
	return call.End(result)
}

// tarIn unpacks below a directory that code may have written to, and may write to meanwhile.
func tarIn(r io.Reader, directory int, req *agentproto.TarInRequest) (*agentproto.TarResult, error) {
	var left skipped
	made, err := untar.Unpack(r, directory, untar.Options{
		Options: tarcheck.Options{
			MaxMembers: int64(min(req.MaxFiles, math.MaxInt64)), MaxBytes: int64(min(req.MaxBytes, math.MaxInt64)), Links: req.Links,
			Skip: func(name string, why error) { left.add(name, reason(why)) },
		},
		Replace: true,
		// Not O_NOFOLLOW, which makes a link look like a file: beneath refuses it as a link.
		Open: func(at int, name string) (int, error) {
			return openat2(at, name, unix.O_PATH|unix.O_DIRECTORY, 0, beneath)
		},
	})
	if err == nil {
		// What follows the archive's end is padding that the sender still writes.
		_, err = io.Copy(io.Discard, r)
	}
	return &agentproto.TarResult{Files: uint64(made.Files), Bytes: uint64(made.Bytes), Skipped: left}, err
}

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
	return archive(call, &archiver{links: req.Links}, req.Path, func(a *archiver) error {
		switch st.Mode & unix.S_IFMT {
		case unix.S_IFREG:
			return a.file(top, req.Prefix, &st)
		case unix.S_IFDIR:
			return a.directory(top, req.Prefix, &st, 0)
		default:
			return unix.ENXIO
		}
	})
}

// archive sends what fill archives, and what is left out of it.
func archive(call *job, a *archiver, path string, fill func(*archiver) error) error {
	a.out = bufio.NewWriterSize(output{call}, agentproto.MaxFrame)
	a.tw, a.buf = tar.NewWriter(a.out), make([]byte, agentproto.MaxFrame)
	err := fill(a)
	if err == nil {
		err = a.tw.Close()
	}
	if err == nil {
		err = a.out.Flush()
	}
	if err != nil {
		return pathError("archive", path, err)
	}
	if err := call.CloseWrite(agentproto.ChanOut); err != nil {
		return err
	}
	return call.End(&agentproto.TarResult{Files: a.files, Bytes: a.bytes, Skipped: a.skipped})
}
