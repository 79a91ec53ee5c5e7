package local

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/llmsandbox/llmsandbox/backend"
	"github.com/llmsandbox/llmsandbox/internal/environ"
	"github.com/llmsandbox/llmsandbox/internal/hostroot"
	"github.com/llmsandbox/llmsandbox/internal/layerstore"
	"github.com/llmsandbox/llmsandbox/internal/ociimage"
)

// baseEnv is every sandbox's own environment, whatever its root.
var baseEnv = []string{"HOME=" + homeDir, "TMPDIR=" + tempDir, "LANG=C.UTF-8", "LC_ALL=C.UTF-8"}

// A rootfs is the file system that a sandbox starts from.
type rootfs struct {
	image string
	from  *ociimage.Image // nil for the host's
	host  bool
	env   []string
	// startDir is the image's own working directory, and uid and gid are those of its
	// user; empty and 0 for the sandbox's.
	startDir string
	uid, gid uint32
	mounts   []mount
	places   places // in place of mounts, where there is no mount namespace
	// prepared are the directories it was made from, the skeleton first; none for an image.
	prepared []string
	tree     []hostroot.Bind // of the host's: what a commit is on top of, the skeleton first
	release  func() error    // gives up the hold on what it was made from; may be nil
}

func ofHost(spec backend.Spec) bool { return spec.Image == "" || spec.Image == "host" }

func (b *Backend) resolveRoot(ctx context.Context, spec backend.Spec) (rootfs, error) {
	if ofHost(spec) {
		r, err := b.hostRoot(spec.WritableRoot, spec.User != "")
		if err == nil && spec.User != "" {
			etc := r.prepared[:1]
			if spec.WritableRoot {
				etc = r.mounts[0].lower
			}
			r.uid, r.gid, err = userOf(etc, spec.User)
		}
		if spec.Sudo {
			r.env = withSudo(r.env)
		}
		return r, err
	}
	img, err := b.image(ctx, spec)
	if err != nil {
		return rootfs{}, err
	}
	r, err := b.imageRoot(ctx, spec, img)
	if err != nil {
		return rootfs{}, errors.Join(fmt.Errorf("image %s: %w", img.Name, err), img.Release())
	}
	r.image, r.from, r.release = img.Name, img, img.Release
	if spec.Sudo {
		r.env = withSudo(r.env)
	}
	return r, nil
}

// imageRoot is the root file system of an image.
func (b *Backend) imageRoot(ctx context.Context, spec backend.Spec, img *ociimage.Image) (rootfs, error) {
	made, err := ociimage.HostDigests(img.Config.Labels)
	if err != nil {
		return rootfs{}, err
	}
	if made != nil {
		return b.onHost(ctx, spec, img, made)
	}
	lower, err := img.Directories("/")
	if err != nil {
		return rootfs{}, err
	}
	if len(lower) == 0 {
		return rootfs{}, fmt.Errorf("it has no files: %w", backend.ErrImageInvalid)
	}
	r := rootfs{
		mounts: []mount{{kind: mountOverlay, target: "/", lower: lower, readOnly: !spec.WritableRoot, code: spec.WritableRoot, root: true}},
		env:    environ.Override(environ.Override([]string{environ.DefaultPath}, img.Config.Env), baseEnv),
	}
	if dir := img.Config.WorkingDir; dir != "/" {
		r.startDir = dir
	}
	if spec.User != "" {
		r.env = environ.WithSystemPath(r.env)
		r.uid, r.gid, err = userOf(lower, spec.User)
	} else {
		r.uid, r.gid, err = imageUser(lower, img.Config.User)
	}
	return r, err
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
func (b *Backend) hostRoot(writable, users bool) (rootfs, error) {
	host := &b.host
	switch {
	case writable && users:
		host = &b.usersHost
	case writable:
		host = &b.writableHost
	}
	host.mu.Lock()
	defer host.mu.Unlock()
	if time.Since(host.found) < hostRootAge {
		// A collection may have removed it since.
		gone := func(path string) bool {
			_, err := os.Lstat(path)
			return err != nil
		}
		if !slices.ContainsFunc(host.root.prepared, gone) {
			return host.root, nil
		}
	}
	root, err := b.findHostRoot(writable, users)
	if err != nil {
		return rootfs{}, fmt.Errorf("the host's toolchains: %w", err)
	}
	host.root, host.found = root, time.Now()
	return root, nil
}

func (b *Backend) findHostRoot(writable, users bool) (rootfs, error) {
	if b.inPlace() {
		return findPlaces(), nil
	}
	d, err := b.dirs()
	if err != nil {
		return rootfs{}, err
	}
	root, err := hostroot.Prepare(d.cache, hostroot.Options{})
	if err != nil {
		return rootfs{}, err
	}
	r := rootfs{image: "host", host: true, env: environ.Override(root.Env, baseEnv), prepared: []string{root.Skeleton}, tree: slices.Concat([]hostroot.Bind{{Source: root.Skeleton, Target: "/"}}, root.Binds)}
	if writable {
		err = r.mountWritable(d, root, users)
	} else {
		r.mounts, err = hostMounts(root.Skeleton, root.Binds)
	}
	return r, err
}

// mountWritable has the host's toolchains below layers that code may write to. It is to see no more of them than without.
func (r *rootfs) mountWritable(d dirs, root *hostroot.Root, users bool) error {
	if !privileged() {
		return fmt.Errorf("%w: only the machine's root can have a root that can be written to made of them: use an image (--image)", backend.ErrUnsupported)
	}
	lower, binds := []string{root.Skeleton}, root.Binds
	if users { // so that package managers work
		system, more, err := hostroot.System(d.cache)
		if err != nil {
			return err
		}
		lower, binds = []string{system, root.Skeleton}, slices.Concat(binds, more)
		r.prepared = append(r.prepared, system)
	}
	r.mounts = []mount{{kind: mountOverlay, target: "/", lower: lower, code: true, root: true}}
	for _, b := range binds {
		lower, err := r.hidePrivate(d, b.Source)
		if err != nil {
			return err
		}
		r.mounts = append(r.mounts, mount{kind: mountOverlay, target: b.Target, lower: lower, code: true, root: true})
	}
	return nil
}

// hidePrivate returns the directories of an overlay that shows of a directory what others may read. Layers above can give what is in it other
// owners and modes.
func (r *rootfs) hidePrivate(d dirs, source string) (lower []string, err error) {
	dir, err := filepath.EvalSymlinks(source) // what is looked at is what is mounted
	if err != nil {
		return nil, err
	}
	mounted, err := hostroot.MountedBelow(dir)
	if err != nil {
		return nil, err
	}
	if mounted != "" {
		return nil, fmt.Errorf("%w: %s is mounted below %s, and would be missing from a root with layers above it: unmount it, or use an image (--image)", backend.ErrUnsupported, mounted, dir)
	}
	private, err := hostroot.Private(d.cache, dir)
	if err != nil {
		return nil, err
	}
	r.prepared = append(r.prepared, private)
	return []string{private, dir}, nil
}

// hold keeps what the sandbox is made from, its root and the layers that this backend
// keeps itself, until release is called.
func (r *rootfs) hold(d dirs, layers []backend.Layer) error {
	for _, dir := range r.prepared {
		held, err := layerstore.HoldDirectory(dir)
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
