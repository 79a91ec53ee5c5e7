package local

import (
	"errors"

	"github.com/llmsandbox/llmsandbox/backend"
	"github.com/llmsandbox/llmsandbox/internal/layerstore"
)

// hold keeps what the sandbox is made from, its root and the layers that this backend
// keeps itself, until release is called.
func (r *rootfs) hold(d dirs, layers []backend.Layer) error {
	if r.skeleton != "" {
		held, err := layerstore.HoldFolder(r.skeleton)
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
	r.release = func() error {
		err := do()
		if before != nil {
			err = errors.Join(before(), err)
		}
		return err
	}
}
