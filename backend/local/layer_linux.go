package local

import (
	"context"
	"os"
	"strconv"

	"github.com/llmsandbox/llmsandbox/backend"
	"github.com/llmsandbox/llmsandbox/internal/hostroot"
	"github.com/llmsandbox/llmsandbox/internal/layerstore"
	"github.com/llmsandbox/llmsandbox/internal/ociimage"
)

// Fingerprint names a program of spec's image without running it: of the host's own
// toolchains the file that it is, of an image the whole image, which is fetched when
// it is not there. It is "" when the host has no such program.
func (b *Backend) Fingerprint(ctx context.Context, spec backend.Spec, program string) (string, error) {
	if spec.Image == "" || spec.Image == "host" {
		path := hostroot.Locate(spec.Language, program, hostroot.Options{})
		if path == "" {
			return "", nil
		}
		info, err := os.Stat(path)
		if err != nil {
			return "", nil // it went away just now
		}
		return path + "\x00" + strconv.FormatInt(info.Size(), 10) + "\x00" + strconv.FormatInt(info.ModTime().UnixNano(), 10), nil
	}
	store, err := b.images()
	if err != nil {
		return "", err
	}
	img, err := store.Resolve(ctx, spec.Image, ociimage.Options{Progress: spec.Progress})
	if err != nil {
		return "", err
	}
	return img.ID + "\x00" + program, img.Release()
}

// Layer returns the folder of a key, which is of [a-z0-9-], for Spec.Layers. When it
// is not there, fill makes it in an empty folder, once among all processes that share
// the cache folder: the others wait. Until fill has succeeded nobody sees anything of
// it. After fill has failed Layer returns "" for an hour instead of trying again.
func (b *Backend) Layer(ctx context.Context, key string, fill func(ctx context.Context, dir string) error) (string, error) {
	d, err := b.dirs()
	if err != nil {
		return "", err
	}
	return d.store().Layer(ctx, key, fill)
}

// store keeps prepared layers and libraries in the cache folder.
func (d dirs) store() layerstore.Store { return layerstore.Store{Dir: d.cache} }
