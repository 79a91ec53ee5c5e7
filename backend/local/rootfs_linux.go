package local

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/llmsandbox/llmsandbox/internal/guest/nsinit"
	"github.com/llmsandbox/llmsandbox/internal/layerstore"
)

const (
	safe     = unix.MOUNT_ATTR_NOSUID | unix.MOUNT_ATTR_NODEV
	readOnly = safe | unix.MOUNT_ATTR_RDONLY
)

// A rootfs is the read-only file system that a sandbox starts from.
type rootfs struct {
	image string
	host  bool
	env   []string
	// startDir is the image's own working directory, and uid and gid are those of its
	// user; empty and 0 for the sandbox's.
	startDir string
	uid, gid uint32
	// steps put it in place, the first at "/".
	steps []nsinit.Step
	// union holds the directories of an image, top first; the launcher adds one with
	// the mount points on top and makes the first step of them.
	union []string
	// skeleton is the prepared directory it was made from; empty for an image.
	skeleton string
	release  func() error // gives up the hold on what it was made from; may be nil
}

// hostSteps build the root of the host's own toolchains: a small tmpfs that repeats
// the prepared skeleton, so that further mount points can be made in it, with the
// host's directories mounted into it. empty is an empty directory.
func hostSteps(skeleton, empty string, binds [][2]string) ([]nsinit.Step, error) {
	steps := []nsinit.Step{{Op: nsinit.OpFilesystem, Path: "/", Source: "tmpfs", Attr: safe,
		Options: []string{"mode=755", "size=4m", "nr_inodes=4096"}}}
	inner, err := copySkeleton(skeleton, empty, "/")
	if err != nil {
		return nil, err
	}
	steps = append(steps, inner...)
	for _, b := range binds {
		steps = append(steps, mountFolder(b[0], b[1], empty))
	}
	return steps, nil
}

// mountFolder mounts a host directory read-only at path. Where the mount table would show
// a path of the host that is not seen inside anyway, such as one below a user's home,
// it is hidden. That costs half a millisecond, which root's own cache directory is not
// worth: it is called the same everywhere.
func mountFolder(source, path, empty string) nsinit.Step {
	if source == path || strings.HasPrefix(source, layerstore.RootDir+"/") {
		return nsinit.Step{Op: nsinit.OpBind, Source: source, Path: path, Attr: readOnly}
	}
	return nsinit.Step{Op: nsinit.OpVeil, Source: source, Path: path, Options: []string{empty}, Attr: readOnly}
}

// copySkeleton repeats directories that hold nothing but directories and links, and mounts the
// others as they are.
func copySkeleton(host, empty, inside string) ([]nsinit.Step, error) {
	entries, err := os.ReadDir(host)
	if err != nil {
		return nil, err
	}
	var steps []nsinit.Step
	for _, e := range entries {
		from, to := filepath.Join(host, e.Name()), filepath.Join(inside, e.Name())
		switch {
		case e.Type()&os.ModeSymlink != 0:
			target, err := os.Readlink(from)
			if err != nil {
				return nil, err
			}
			steps = append(steps, nsinit.Step{Op: nsinit.OpSymlink, Path: to, Source: target})
		case e.IsDir():
			steps = append(steps, nsinit.Step{Op: nsinit.OpMkdir, Path: to, Mode: 0o755})
			files, err := holdsFiles(from)
			if err != nil {
				return nil, err
			}
			if files {
				steps = append(steps, mountFolder(from, to, empty))
				continue
			}
			below, err := copySkeleton(from, empty, to)
			if err != nil {
				return nil, err
			}
			steps = append(steps, below...)
		default:
			return nil, fmt.Errorf("%s is neither a folder nor a link: remove %s, which is made again", from, host)
		}
	}
	return steps, nil
}

// holdsFiles reports whether a directory holds anything but directories and links, at any depth.
func holdsFiles(dir string) (bool, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return false, err
	}
	for _, e := range entries {
		switch {
		case e.Type()&os.ModeSymlink != 0:
		case !e.IsDir():
			return true, nil
		default:
			if files, err := holdsFiles(filepath.Join(dir, e.Name())); err != nil || files {
				return files, err
			}
		}
	}
	return false, nil
}
