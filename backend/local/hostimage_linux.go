package local

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/llmsandbox/llmsandbox/backend"
	"github.com/llmsandbox/llmsandbox/internal/hostroot"
	"github.com/llmsandbox/llmsandbox/internal/ociimage"
)

// onHost is the host's own toolchains with the layers of an image that was made on top of them. The sandbox shows
// of the host what any other does, by its options: the image only adds files to it, and hides some.
func (b *Backend) onHost(ctx context.Context, spec backend.Spec, img *ociimage.Image, made map[string]string) (rootfs, error) {
	if spec.User != "" && !privileged() {
		return rootfs{}, fmt.Errorf("user %s: %w: with the host's toolchains, only the machine's root can give code users of its own", spec.User, backend.ErrUnsupported)
	}
	r, err := b.hostRoot(spec.WritableRoot, spec.User != "")
	if err != nil {
		return rootfs{}, err
	}
	r.host = false // programs need not be the host's
	now, err := hostroot.Digests(ctx, r.tree, time.Time{})
	if err != nil {
		return rootfs{}, err
	}
	if differing := hostroot.Differing(now, made); len(differing) > 0 {
		return rootfs{}, fmt.Errorf("it goes on top of the files that its host had when it was made, and here %.200q differ: make it again, or commit a sandbox of an image instead: %w", differing[:min(len(differing), 5)], backend.ErrImageInvalid)
	}
	if r.mounts, err = b.onTree(&r, spec, img); err != nil {
		return rootfs{}, err
	}
	if spec.User != "" {
		if r.uid, r.gid, err = userOf(r.mounts[0].lower, spec.User); err != nil {
			return rootfs{}, err
		}
	}
	return r, nil
}

// onTree returns a root's mounts with what the image has of each.
func (b *Backend) onTree(r *rootfs, spec backend.Spec, img *ociimage.Image) (mounts []mount, err error) {
	d, err := b.dirs()
	if err != nil {
		return nil, err
	}
	mounts = slices.Clone(r.mounts)
	if !spec.WritableRoot {
		mounts = nil
		for _, b := range r.tree {
			mounts = append(mounts, mount{kind: mountBind, source: b.Source, target: b.Target, readOnly: true})
		}
		mounts[0] = mount{kind: mountOverlay, target: "/", lower: []string{r.tree[0].Source}, readOnly: true}
	}
	r.prepared = slices.Clone(r.prepared)
	for i := range mounts {
		m := &mounts[i]
		layers, err := img.Directories(m.target)
		if err != nil {
			return nil, err
		}
		if len(layers) > 0 && m.kind == mountBind {
			lower, err := r.hidePrivate(d, m.source)
			if err != nil {
				return nil, err
			}
			*m = mount{kind: mountOverlay, target: m.target, lower: lower, readOnly: true}
		}
		m.lower = slices.Concat(layers, m.lower)
	}
	return mounts, nil
}

// base opens what a sandbox's changes go on top of.
func (d *description) base(ctx context.Context) (*ociimage.Outside, error) {
	var digests map[string]string
	if d.record.Tree != nil {
		var err error
		digests, err = hostroot.Digests(ctx, d.record.Tree, d.record.Info.Created)
		if errors.Is(err, hostroot.ErrChanged) {
			err = fmt.Errorf("%w: %w since the sandbox was opened: open a new one", backend.ErrInvalid, err)
		}
		if err != nil {
			return nil, err
		}
	}
	if d.record.Base.ID == "" {
		return ociimage.OnHost(digests)
	}
	dir, err := d.images()
	if err != nil {
		return nil, err
	}
	return ociimage.NewStore(dir).Outside(ctx, d.record.Base)
}
