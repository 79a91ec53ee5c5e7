package local

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/llmsandbox/llmsandbox/backend"
	"github.com/llmsandbox/llmsandbox/internal/environ"
	"github.com/llmsandbox/llmsandbox/internal/hostroot"
	"github.com/llmsandbox/llmsandbox/internal/layerstore"
)

// baseEnv is every sandbox's own environment, whatever its root.
var baseEnv = []string{"HOME=" + homeDir, "TMPDIR=" + tempDir, "LANG=C.UTF-8", "LC_ALL=C.UTF-8"}

// A rootfs is the read-only file system that a sandbox starts from.
type rootfs struct {
	image string
	host  bool
	env   []string
	// startDir is the image's own working directory, and uid and gid are those of its
	// user; empty and 0 for the sandbox's.
	startDir string
	uid, gid uint32
	mounts   []mount
	// skeleton is the prepared directory it was made from; empty for an image.
	skeleton string
	release  func() error // gives up the hold on what it was made from; may be nil
}

func ofHost(spec backend.Spec) bool { return spec.Image == "" || spec.Image == "host" }

func (b *Backend) resolveRoot(ctx context.Context, spec backend.Spec) (rootfs, error) {
	if ofHost(spec) {
		return b.hostRoot()
	}
	img, err := b.image(ctx, spec)
	if err != nil {
		return rootfs{}, err
	}
	if len(img.Layers) == 0 {
		return rootfs{}, errors.Join(fmt.Errorf("image %s has no files: %w", img.Name, backend.ErrImageInvalid), img.Release())
	}
	lower := slices.Clone(img.Layers)
	slices.Reverse(lower)
	r := rootfs{
		image: img.Name, release: img.Release, mounts: []mount{{kind: mountOverlay, target: "/", lower: lower, readOnly: true}},
		env: environ.Override(environ.Override([]string{environ.DefaultPath}, img.Config.Env), baseEnv),
	}
	if dir := img.Config.WorkingDir; dir != "/" {
		r.startDir = dir
	}
	if r.uid, r.gid, err = imageUser(lower, img.Config.User); err != nil {
		return rootfs{}, errors.Join(fmt.Errorf("image %s: %w", img.Name, err), img.Release())
	}
	return r, nil
}

// hostRootAge is for how long what was found on the host counts: sandboxes that are
// opened in a burst need not each look at hundreds of files.
const hostRootAge = time.Second

// hostRoots keeps the last host root. No caller may change what is in it.
type hostRoots struct {
	mu    sync.Mutex
	found time.Time
	root  rootfs
}

// hostRoot is the root filesystem of the host's own toolchains.
func (b *Backend) hostRoot() (rootfs, error) {
	b.host.mu.Lock()
	defer b.host.mu.Unlock()
	if time.Since(b.host.found) < hostRootAge {
		// A collection may have removed it since.
		if _, err := os.Lstat(b.host.root.skeleton); err == nil {
			return b.host.root, nil
		}
	}
	root, err := b.findHostRoot()
	if err != nil {
		return rootfs{}, err
	}
	b.host.root, b.host.found = root, time.Now()
	return root, nil
}

func (b *Backend) findHostRoot() (rootfs, error) {
	d, err := b.dirs()
	if err != nil {
		return rootfs{}, err
	}
	root, err := hostroot.Prepare(d.cache, hostroot.Options{})
	if err != nil {
		return rootfs{}, fmt.Errorf("the host's toolchains: %w", err)
	}
	mounts, err := hostMounts(root.Skeleton, root.Binds)
	if err != nil {
		return rootfs{}, fmt.Errorf("the host's toolchains: %w", err)
	}
	return rootfs{image: "host", host: true, env: environ.Override(root.Env, baseEnv), mounts: mounts, skeleton: root.Skeleton}, nil
}

// hold keeps what the sandbox is made from, its root and the layers that this backend
// keeps itself, until release is called.
func (r *rootfs) hold(d dirs, layers []backend.Layer) error {
	if r.skeleton != "" {
		held, err := layerstore.HoldDirectory(r.skeleton)
		if err != nil {
			return err
		}
		r.alsoRelease(held.Close)
	}
	sources := make([]string, len(layers))
	for i, l := range layers {
		sources[i] = l.Source
	}
	release, err := d.store().Hold(sources...)
	if err != nil {
		return err
	}
	r.alsoRelease(release)
	return nil
}

// alsoRelease has release do something more.
func (r *rootfs) alsoRelease(do func() error) {
	before := r.release
	r.release = func() error { return errors.Join(before(), do()) }
	if before == nil {
		r.release = do
	}
}
