package ociimage

import (
	"archive/tar"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/llmsandbox/llmsandbox/backend"
	"github.com/llmsandbox/llmsandbox/internal/tarcheck"
)

// An unpacker writes one layer below a directory. The tar is hostile: every path is
// resolved by the kernel with that directory as the root, then only the last name is
// used, without following a link.
//
// It is neither internal/untar nor the agent's: here links of directories lead on, a later entry
// replaces an earlier one, names that begin with .wh. delete what lower layers have, what is
// no file is left out where the others refuse it, and the limits are those of all layers together.
type unpacker struct {
	ctx    context.Context
	root   dir
	budget *budget
	rec    layerRecord
	buf    []byte
	// parent is the directory last worked in, since entries of one directory follow
	// each other.
	parent     dir
	parentName string
	// times are those of directories, set last since making files changes them.
	times map[string]time.Time
	// left are the devices and the like that a hard link may want.
	left map[string]bool
}

// unpack makes the directory and unpacks the tar into it. On an error the directory is
// left half-made.
func unpack(ctx context.Context, target string, r io.Reader, b *budget) (layerRecord, error) {
	if err := os.Mkdir(target, 0o700); err != nil {
		return layerRecord{}, fmt.Errorf("unpack a layer: %w", err)
	}
	fd, err := unix.Open(target, unix.O_PATH|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return layerRecord{}, fmt.Errorf("unpack a layer: %w", err)
	}
	u := &unpacker{
		ctx: ctx, root: dir(fd), budget: b, parent: noDir,
		buf: make([]byte, 128<<10), times: map[string]time.Time{}, left: map[string]bool{},
	}
	defer u.root.close()
	defer u.forgetParent()
	tr := tar.NewReader(r)
	for {
		if ctx.Err() != nil {
			return u.rec, context.Cause(ctx)
		}
		h, err := tr.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return u.rec, tarError(err)
		}
		if h.Typeflag == tar.TypeXGlobalHeader {
			continue
		}
		if err := u.entry(h, tr); err != nil {
			return u.rec, entryError(h.Name, err)
		}
	}
	if err := u.setTimes(); err != nil {
		return u.rec, err
	}
	// The image's root, which every user inside walks through.
	if err := os.Chmod(target, 0o755); err != nil {
		return u.rec, fmt.Errorf("unpack a layer: %w", err)
	}
	return u.rec, nil
}

func (u *unpacker) entry(h *tar.Header, r io.Reader) error {
	if err := u.budget.addEntry(); err != nil {
		return err
	}
	name, err := cleanName(h.Name)
	if err != nil {
		return err
	}
	if name == "" {
		return nil // the root itself
	}
	parentName, base := path.Split(name)
	parent, err := u.enter(strings.TrimSuffix(parentName, "/"))
	if err != nil {
		return err
	}
	if strings.HasPrefix(base, whiteoutPrefix) {
		return u.whiteout(parent, base)
	}
	mode := uint32(h.Mode) & 0o777
	switch h.Typeflag {
	case tar.TypeDir:
		if err := u.makeDir(parent, base, mode|uint32(h.Mode)&unix.S_ISVTX); err != nil {
			return err
		}
		u.times[name] = h.ModTime
		u.rec.Entries++
		return nil
	case tar.TypeReg, tar.TypeCont, tar.TypeGNUSparse:
		err = u.makeFile(parent, base, mode, h.Size, r)
	case tar.TypeSymlink:
		err = u.makeSymlink(parent, base, h.Linkname)
	case tar.TypeLink:
		return u.makeLink(parent, base, name, h.Linkname)
	default:
		u.left[name] = true
		u.rec.Skipped++
		return nil
	}
	if err != nil {
		return err
	}
	u.rec.Entries++
	return parent.setTime(base, h.ModTime)
}

func (u *unpacker) makeFile(parent dir, base string, mode uint32, size int64, r io.Reader) error {
	if err := u.budget.addBytes(size); err != nil {
		return err
	}
	if err := parent.clear(base); err != nil {
		return err
	}
	fd, err := unix.Openat(int(parent), base, unix.O_WRONLY|unix.O_CREAT|unix.O_EXCL|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0o600)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	if _, err := io.CopyBuffer(fdWriter{u.ctx, fd}, struct{ io.Reader }{r}, u.buf); err != nil {
		return err
	}
	u.rec.Size += size
	return unix.Fchmod(fd, mode|0o400)
}

func (u *unpacker) makeSymlink(parent dir, base, target string) error {
	if target == "" || len(target) > tarcheck.MaxName || strings.ContainsRune(target, 0) {
		return invalid("its link target is empty, too long or has a NUL")
	}
	if err := parent.clear(base); err != nil {
		return err
	}
	return unix.Symlinkat(target, int(parent), base)
}

func (u *unpacker) makeLink(parent dir, base, name, target string) error {
	from, err := cleanName(target)
	if err != nil {
		return err
	}
	if from == "" || from == name {
		return invalid("it is a hard link to a folder or to itself")
	}
	if u.left[from] {
		u.left[name] = true
		u.rec.Skipped++
		return nil
	}
	if err := parent.clear(base); err != nil {
		return err
	}
	fromDir, fromBase := path.Split(from)
	d, err := u.root.open(strings.TrimSuffix(fromDir, "/"))
	if err != nil {
		return fmt.Errorf("the target of the hard link: %w", err)
	}
	defer d.close()
	st, err := d.stat(fromBase)
	if err != nil {
		return fmt.Errorf("the target of the hard link: %w", err)
	}
	if kind := st.Mode & unix.S_IFMT; kind != unix.S_IFREG && kind != unix.S_IFLNK {
		return invalid("it is a hard link to something else than a file")
	}
	if err := unix.Linkat(int(d), fromBase, int(parent), base, 0); err != nil {
		return fmt.Errorf("make the hard link: %w", err)
	}
	u.rec.Entries++
	return nil
}

func (u *unpacker) setTimes() error {
	for name, t := range u.times {
		parentName, base := path.Split(name)
		d, err := u.root.open(strings.TrimSuffix(parentName, "/"))
		if err != nil {
			return entryError(name, err)
		}
		err = d.setTime(base, t)
		d.close()
		if err != nil {
			return entryError(name, err)
		}
	}
	return nil
}

// entryError names the entry, and blames the image for what only it can cause.
func entryError(name string, err error) error {
	if len(name) > 200 {
		name = name[:200] + "..."
	}
	var errno unix.Errno
	if !errors.As(err, &errno) {
		return fmt.Errorf("unpack %q: %w", name, tarError(err)) // not from a file we write
	}
	for _, ours := range []unix.Errno{unix.ENOSPC, unix.EDQUOT} {
		if errors.Is(err, ours) {
			return fmt.Errorf("unpack %q: no room in the image store; free some with `llmsandbox image prune`: %w", name, err)
		}
	}
	for _, theirs := range []unix.Errno{unix.ENOENT, unix.ENOTDIR, unix.ELOOP, unix.EEXIST, unix.EXDEV, unix.ENAMETOOLONG, unix.EISDIR, unix.EINVAL} {
		if errors.Is(err, theirs) {
			return fmt.Errorf("unpack %q (%w): %w", name, err, backend.ErrImageInvalid)
		}
	}
	return fmt.Errorf("unpack %q: %w", name, err)
}

// syncFilesystem writes all that path's file system has in memory to the disk: one
// call for a layer's many files.
func syncFilesystem(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return fmt.Errorf("write a layer to the disk: %w", err)
	}
	defer f.Close()
	if err := unix.Syncfs(int(f.Fd())); err != nil {
		return fmt.Errorf("write a layer to the disk: %w", err)
	}
	return nil
}
