//go:build linux

package files

import (
	"archive/tar"
	"errors"
	"io"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/llmsandbox/llmsandbox/internal/agentproto"
)

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
		return pathError("make folder", req.Dir, err)
	}
	fd, err := s.open(p, unix.O_PATH|unix.O_DIRECTORY, 0)
	if err != nil {
		return pathError("unpack into", req.Dir, err)
	}
	defer unix.Close(fd)
	if err := mayServe(fd); err != nil {
		return pathError("unpack into", req.Dir, err)
	}
	u := unpacker{dir: fd, req: &req, buf: make([]byte, 32<<10)}
	if err := u.unpack(input{call}); err != nil {
		return pathError("unpack into", req.Dir, err)
	}
	return call.End(&agentproto.TarResult{Files: u.files, Bytes: u.bytes, Skipped: u.skipped})
}

// unpacker writes a tar stream below a folder.
type unpacker struct {
	dir            int
	req            *agentproto.TarInRequest
	buf            []byte
	members, files uint64
	bytes          uint64
	skipped        skipped
}

func (u *unpacker) unpack(r io.Reader) error {
	tr := tar.NewReader(r)
	for {
		h, err := tr.Next()
		if err == io.EOF {
			// What follows the archive's end is padding that the sender still writes.
			_, err = io.CopyBuffer(onlyWriter{io.Discard}, r, u.buf)
			return err
		}
		if err != nil {
			return streamError(err)
		}
		if u.members++; u.req.MaxFiles > 0 && u.members > u.req.MaxFiles {
			return agentproto.Errorf(agentproto.CodeTooLarge, "the archive has more than the %d members allowed", u.req.MaxFiles)
		}
		if err := u.member(tr, h); err != nil {
			return err
		}
	}
}

func (u *unpacker) member(tr *tar.Reader, h *tar.Header) error {
	name, why := memberName(h, u.req.Links)
	if why == "" && name == "" {
		return nil // the folder itself
	}
	if why == "" {
		var err error
		switch h.Typeflag {
		case tar.TypeDir:
			err = u.folder(name, uint32(h.Mode))
		case tar.TypeSymlink:
			err = u.link(name, h.Linkname)
		default:
			err = u.file(tr, name, uint32(h.Mode))
		}
		if err == nil {
			return nil
		}
		if !errors.Is(err, unix.ELOOP) && !errors.Is(err, unix.EXDEV) {
			return pathError("unpack", strings.TrimSuffix(u.req.Dir, "/")+"/"+name, err)
		}
		why = reason(err)
	}
	u.skipped.add(h.Name, why)
	return nil
}

// memberName cleans a member's name, or tells why the member is left out.
func memberName(h *tar.Header, links bool) (name, why string) {
	switch h.Typeflag {
	case tar.TypeReg, tar.TypeDir:
	case tar.TypeSymlink, tar.TypeLink:
		if h.Typeflag == tar.TypeLink || !links {
			return "", "link"
		}
	default:
		return "", "neither a regular file nor a folder"
	}
	if strings.HasPrefix(h.Name, "/") {
		return "", "absolute name"
	}
	if len(h.Name) >= maxPath || strings.IndexByte(h.Name, 0) >= 0 {
		return "", "impossible name"
	}
	var parts []string
	for part := range strings.SplitSeq(h.Name, "/") {
		switch part {
		case "", ".":
		case "..":
			return "", "name with .."
		default:
			parts = append(parts, part)
		}
	}
	if len(parts) == 0 && h.Typeflag != tar.TypeDir {
		return "", "no name"
	}
	return strings.Join(parts, "/"), ""
}

// folder makes a folder and those above it. One that is there keeps its mode: it may
// be anybody's.
func (u *unpacker) folder(name string, mode uint32) error {
	fd, err := u.openFolder(name, safeMode(mode)|0o700)
	if err != nil {
		return err
	}
	return unix.Close(fd)
}

// openFolder opens a folder below the destination, making what is missing, the last
// one with mode.
func (u *unpacker) openFolder(name string, mode uint32) (int, error) {
	// Not O_NOFOLLOW, which makes a link look like a file: beneath refuses it as a link.
	const flags = unix.O_PATH | unix.O_DIRECTORY
	at, err := openat2(u.dir, ".", flags, 0, beneath)
	for rest := name; rest != ""; {
		if err != nil {
			return -1, err
		}
		var part string
		part, rest, _ = strings.Cut(rest, "/")
		var next int
		next, err = openat2(at, part, flags, 0, beneath)
		if err == unix.ENOENT {
			made := uint32(0o755)
			if rest == "" {
				made = mode
			}
			if err = unix.Mkdirat(at, part, made); err == nil || err == unix.EEXIST {
				next, err = openat2(at, part, flags, 0, beneath)
			}
		}
		unix.Close(at)
		at = next
	}
	return at, err
}

// file writes a file, always a new one: what is at its place, a link to elsewhere or
// another name of a file too, is replaced and not written to.
func (u *unpacker) file(r io.Reader, name string, mode uint32) error {
	at, base, err := u.place(name)
	if err != nil {
		return err
	}
	defer unix.Close(at)
	fd, err := replace(at, base)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	if err := unix.Fchmod(fd, safeMode(mode)); err != nil {
		return err
	}
	u.files++
	return u.copy(fd, r)
}

// link makes a symbolic link in place of what is there. It is never followed here.
func (u *unpacker) link(name, target string) error {
	at, base, err := u.place(name)
	if err != nil {
		return err
	}
	defer unix.Close(at)
	if err := unix.Unlinkat(at, base, 0); err != nil && err != unix.ENOENT {
		return err
	}
	u.files++
	return unix.Symlinkat(target, at, base)
}

// place opens the folder that a member lies in and tells its name there.
func (u *unpacker) place(name string) (at int, base string, err error) {
	i := strings.LastIndexByte(name, '/')
	at, err = u.openFolder(name[:max(i, 0)], 0o755)
	return at, name[i+1:], err
}

// replace makes a new file at a place where something may be already.
func replace(at int, base string) (int, error) {
	// Code that makes files meanwhile can win some rounds, but need not be waited for.
	for range 100 {
		fd, err := openat2(at, base, writeFlags|unix.O_CREAT|unix.O_EXCL, 0o600, beneath)
		if err != unix.EEXIST {
			return fd, err
		}
		if err := unix.Unlinkat(at, base, 0); err != nil && err != unix.ENOENT {
			return -1, err
		}
	}
	return -1, unix.EBUSY
}

func (u *unpacker) copy(fd int, r io.Reader) error {
	for {
		n, err := r.Read(u.buf)
		if u.bytes += uint64(n); u.req.MaxBytes > 0 && u.bytes > u.req.MaxBytes {
			return agentproto.Errorf(agentproto.CodeTooLarge, "the archive holds more than the %d bytes allowed", u.req.MaxBytes)
		}
		for p := u.buf[:n]; len(p) > 0; {
			written, err := unix.Write(fd, p)
			if err != nil && err != unix.EINTR {
				return err
			}
			p = p[max(written, 0):]
		}
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return streamError(err)
		}
	}
}

// streamError tells a damaged archive from a stream that ended.
func streamError(err error) error {
	if errors.Is(err, tar.ErrHeader) || errors.Is(err, io.ErrUnexpectedEOF) {
		return agentproto.Errorf(agentproto.CodeBadRequest, "the archive is damaged: %v", err)
	}
	return err
}

func safeMode(mode uint32) uint32 { return mode&0o777&^0o022 | 0o600 }
