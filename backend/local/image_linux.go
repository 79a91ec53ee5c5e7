package local

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/llmsandbox/llmsandbox/backend"
	"github.com/llmsandbox/llmsandbox/internal/errclass"
	"github.com/llmsandbox/llmsandbox/internal/guest/nsinit"
	"github.com/llmsandbox/llmsandbox/internal/ociimage"
)

// ImageDir is the directory of the images that sandboxes start from.
func (b *Backend) ImageDir() (string, error) {
	d, err := b.dirs()
	if err != nil {
		return "", err
	}
	return filepath.Join(d.cache, "images"), nil
}

// image is the one that a sandbox is made from, which is fetched when it is not there.
func (b *Backend) image(ctx context.Context, spec backend.Spec) (*ociimage.Image, error) {
	dir, err := b.ImageDir()
	if err != nil {
		return nil, err
	}
	return ociimage.NewStore(dir).Resolve(ctx, spec.Image, ociimage.Options{Progress: spec.Progress})
}

// maxAccounts bounds what is read of an image's passwd or group file, in bytes.
const maxAccounts = 1 << 20

// imageUser returns the ids that an image's user, "name", "uid", "name:group" or
// "uid:gid", has inside. A 0 stands for the sandbox's own id: no code is root, or of
// root's group.
func imageUser(layers []string, spec string) (uid, gid uint32, err error) {
	name, group, hasGroup := strings.Cut(spec, ":")
	if name != "" && name != "root" {
		if uid, gid, err = account(layers, name); err != nil {
			return 0, 0, err
		}
	}
	if !hasGroup {
		return uid, gid, nil
	}
	if group == "root" {
		return uid, 0, nil
	}
	if gid, err = parseAccountID(group); err == nil {
		return uid, gid, nil
	}
	fields, err := accountLine(layers, "group", 0, group)
	if err != nil {
		return 0, 0, err
	}
	gid, err = parseAccountID(fields[2])
	return uid, gid, err
}

// userOf resolves the user that a sandbox is to run code as.
func userOf(layers []string, spec string) (uid, gid uint32, err error) {
	uid, gid, err = imageUser(layers, spec)
	if errors.Is(err, backend.ErrImageInvalid) {
		err = errclass.Errorf(backend.ErrInvalid, "/etc/passwd and /etc/group of the sandbox do not have it: use a number, or an image that has it")
	}
	if uid >= nsinit.RootID || gid >= nsinit.RootID {
		err = errclass.Errorf(backend.ErrInvalid, "ids are below %d", nsinit.RootID)
	}
	if err != nil {
		return 0, 0, fmt.Errorf("user %s: %w", spec, err)
	}
	return uid, gid, nil
}

// account returns a user's uid and primary gid. A number needs no entry of its own.
func account(layers []string, name string) (uid, gid uint32, err error) {
	uid, notNumber := parseAccountID(name)
	if notNumber == nil {
		// The uid alone says enough; the entry is asked for its group only.
		if fields, err := accountLine(layers, "passwd", 2, name); err == nil {
			gid, _ = parseAccountID(fields[3])
		}
		return uid, gid, nil
	}
	fields, err := accountLine(layers, "passwd", 0, name)
	if err != nil {
		return 0, 0, err
	}
	if uid, err = parseAccountID(fields[2]); err != nil {
		return 0, 0, err
	}
	gid, err = parseAccountID(fields[3])
	return uid, gid, err
}

// parseAccountID parses an id; the largest number is none to the kernel.
func parseAccountID(s string) (uint32, error) {
	n, err := strconv.ParseUint(s, 10, 32)
	if err != nil || n == 1<<32-1 {
		return 0, fmt.Errorf("image user: %.40q is no uid or gid: %w", s, backend.ErrImageInvalid)
	}
	return uint32(n), nil
}

// accountLine returns the fields, four or more, of the first line of /etc/passwd or
// /etc/group whose given field has that value.
func accountLine(layers []string, file string, field int, value string) ([]string, error) {
	text, err := readEtc(layers, file)
	if err != nil {
		return nil, err
	}
	for line := range strings.SplitSeq(text, "\n") {
		if f := strings.Split(line, ":"); len(f) >= 4 && f[field] == value {
			return f, nil
		}
	}
	return nil, fmt.Errorf("image user: /etc/%s of the image has no %.40q: name a number in the image's USER, or add the entry: %w", file, value, backend.ErrImageInvalid)
}

// readEtc reads a file of an image's /etc out of its layers, top first, following no
// link. "" means that there is none.
func readEtc(layers []string, name string) (string, error) {
	for _, layer := range layers {
		text, hidden, err := readLayerEtc(layer, name)
		if err != nil {
			return "", fmt.Errorf("image user: read the image's /etc/%s: %w", name, err)
		}
		if hidden {
			return text, nil
		}
	}
	return "", nil
}

// readLayerEtc reads the file in one layer; hidden means that what lower layers have
// does not count.
func readLayerEtc(layer, name string) (text string, hidden bool, err error) {
	root, err := unix.Open(layer, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return "", false, err
	}
	defer unix.Close(root)
	how := &unix.OpenHow{Flags: unix.O_RDONLY | unix.O_CLOEXEC | unix.O_NONBLOCK | unix.O_NOCTTY,
		Resolve: unix.RESOLVE_BENEATH | unix.RESOLVE_NO_SYMLINKS}
	fd, err := unix.Openat2(root, filepath.Join("etc", name), how)
	if err == nil {
		f := os.NewFile(uintptr(fd), name)
		defer f.Close()
		if info, err := f.Stat(); err != nil || !info.Mode().IsRegular() {
			return "", true, err // a whiteout: there is none
		}
		b, err := io.ReadAll(io.LimitReader(f, maxAccounts))
		return string(b), true, err
	}
	if errors.Is(err, unix.ENXIO) || errors.Is(err, unix.ELOOP) { // a whiteout, or a link
		return "", true, nil
	}
	if !errors.Is(err, unix.ENOENT) {
		return "", false, err
	}
	how.Flags |= unix.O_DIRECTORY
	etc, err := unix.Openat2(root, "etc", how)
	if errors.Is(err, unix.ENOENT) {
		return "", false, nil
	}
	if err != nil {
		return "", true, nil // a whiteout or a file in the place of the directory
	}
	defer unix.Close(etc)
	var value [1]byte
	n, err := unix.Fgetxattr(etc, "user.overlay.opaque", value[:])
	return "", err == nil && n == 1 && value[0] == 'y', nil
}
