//go:build linux

package files

import (
	"archive/tar"
	"bufio"
	"io"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// archiver writes a tree as a tar stream. What cannot be read, or not be named in an
// archive, is skipped; only a failure to write the stream is an error.
type archiver struct {
	out          *bufio.Writer
	tw           *tar.Writer
	links        bool // symbolic links are members
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

func (a *archiver) folder(dir *os.File, name string, st *unix.Stat_t, depth int) error {
	prefix := ""
	if name != "" {
		prefix = name + "/"
		h := &tar.Header{Typeflag: tar.TypeDir, Name: prefix, Mode: int64(st.Mode & 0o777), ModTime: modTime(st)}
		if ok, err := a.header(h); !ok {
			return err
		}
	}
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
			a.skipped.add(prefix, "the rest of the folder cannot be listed: "+reason(err))
			return nil
		}
	}
}

// entry archives one entry of a directory.
func (a *archiver) entry(dir int, base, name string, depth int) error {
	var st unix.Stat_t
	if err := unix.Fstatat(dir, base, &st, unix.AT_SYMLINK_NOFOLLOW); err != nil {
		a.skipped.add(name, reason(err))
		return nil
	}
	flags := readFlags
	switch st.Mode & unix.S_IFMT {
	case unix.S_IFREG:
	case unix.S_IFDIR:
		if depth >= maxTarDepth {
			a.skipped.add(name, "too many folders within each other")
			return nil
		}
		flags = dirFlags
	case unix.S_IFLNK:
		if a.links {
			return a.link(dir, base, name, &st)
		}
		a.skipped.add(name, "symbolic link")
		return nil
	default:
		a.skipped.add(name, "neither a regular file nor a folder")
		return nil
	}
	fd, err := openat2(dir, base, flags, 0, beneath)
	if err != nil {
		a.skipped.add(name, reason(err))
		return nil
	}
	f := os.NewFile(uintptr(fd), base)
	defer f.Close()
	if flags == dirFlags {
		if err := unix.Fstat(fd, &st); err != nil {
			a.skipped.add(name, reason(err))
			return nil
		}
		return a.folder(f, name, &st, depth+1)
	}
	if st, err = regular(fd); err != nil {
		a.skipped.add(name, reason(err))
		return nil
	}
	return a.file(f, name, &st)
}

// link archives a symbolic link as what it says.
func (a *archiver) link(dir int, base, name string, st *unix.Stat_t) error {
	target := make([]byte, maxPath)
	n, err := unix.Readlinkat(dir, base, target)
	if err != nil {
		a.skipped.add(name, reason(err))
		return nil
	}
	_, err = a.header(&tar.Header{Typeflag: tar.TypeSymlink, Name: name, Linkname: string(target[:n]), Mode: 0o777, ModTime: modTime(st)})
	return err
}

// file archives a regular file at the size it has now, whatever becomes of it
// meanwhile: what cannot be read any more is zeros, and is reported.
func (a *archiver) file(f *os.File, name string, st *unix.Stat_t) error {
	h := &tar.Header{Typeflag: tar.TypeReg, Name: name, Size: st.Size, Mode: int64(st.Mode & 0o777), ModTime: modTime(st)}
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
