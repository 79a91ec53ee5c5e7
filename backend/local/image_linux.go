package local

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/llmsandbox/llmsandbox/backend"
	"github.com/llmsandbox/llmsandbox/internal/environ"
	"github.com/llmsandbox/llmsandbox/internal/guest/nsinit"
	"github.com/llmsandbox/llmsandbox/internal/ociimage"
)

// baseEnv is every sandbox's own environment, whatever its root.
var baseEnv = []string{"HOME=" + homeDir, "TMPDIR=" + tempDir, "LANG=C.UTF-8", "LC_ALL=C.UTF-8"}

// ImageDir is the directory of the images that sandboxes start from.
func (b *Backend) ImageDir() (string, error) {
	d, err := b.dirs()
	if err != nil {
		return "", err
	}
	return filepath.Join(d.cache, "images"), nil
}

func (b *Backend) images() (*ociimage.Store, error) {
	dir, err := b.ImageDir()
	return ociimage.NewStore(dir), err
}

func (b *Backend) resolveRoot(ctx context.Context, d dirs, spec backend.Spec) (rootfs, error) {
	if spec.Image == "" || spec.Image == "host" {
		return b.hostRoot()
	}
	store, err := b.images()
	if err != nil {
		return rootfs{}, err
	}
	img, err := store.Resolve(ctx, spec.Image, ociimage.Options{Progress: spec.Progress})
	if err != nil {
		return rootfs{}, err
	}
	if len(img.Layers) == 0 {
		return rootfs{}, errors.Join(fmt.Errorf("image %s has no files: %w", img.Name, backend.ErrImageInvalid), img.Release())
	}
	r := rootfs{image: img.Name, release: img.Release, env: environ.Override(environ.Override([]string{environ.DefaultPath}, img.Config.Env), baseEnv)}
	for i := len(img.Layers) - 1; i >= 0; i-- {
		r.union = append(r.union, img.Layers[i])
	}
	if dir := img.Config.WorkingDir; dir != "/" {
		r.startDir = dir
	}
	if r.uid, r.gid, err = imageUser(r.union, img.Config.User); err != nil {
		return rootfs{}, errors.Join(fmt.Errorf("image %s: %w", img.Name, err), img.Release())
	}
	return r, nil
}

// imageRoot makes the directory of mount points that lies on top of an image's layers, and
// the step that mounts them all. On top, because what an image has at these paths may
// be a link.
func (c *creation) imageRoot() (nsinit.Step, error) {
	points := filepath.Join(c.folder.path, "points")
	dirs := []string{"/proc", "/dev", tempDir, workdir}
	for _, l := range c.spec.Layers {
		if !below(l.Target, tempDir) && !below(l.Target, workdir) {
			dirs = append(dirs, l.Target)
		}
	}
	for _, dir := range dirs {
		if err := os.MkdirAll(filepath.Join(points, dir), 0o755); err != nil {
			return nsinit.Step{}, fmt.Errorf("mount points: %w", err)
		}
	}
	if err := os.Chmod(points, 0o755); err != nil {
		return nsinit.Step{}, fmt.Errorf("mount points: %w", err)
	}
	return nsinit.Step{Op: nsinit.OpUnion, Path: "/", Attr: readOnly, Options: append([]string{points}, c.root.union...)}, nil
}
