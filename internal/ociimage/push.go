package ociimage

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/partial"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/remote/transport"
	"github.com/google/go-containerregistry/pkg/v1/types"

	"github.com/llmsandbox/llmsandbox/backend"
)

// Push sends the one image of a tar with an OCI layout to a registry, under a name with a tag, and returns what names it there by its
// digest. Layers that the registry has are not sent again. The credentials are those of the user's Docker configuration. It fails with
// backend.ErrInvalid for what is no such name, and with backend.ErrImageInvalid for what is no such file.
func Push(ctx context.Context, file, to string) (string, error) {
	tag, err := name.NewTag(to)
	if err != nil {
		return "", fmt.Errorf("push to %.200q: %w: name it as REGISTRY/NAME:TAG: %w", to, backend.ErrInvalid, err)
	}
	a, err := openArchive(ctx, file, os.TempDir(), newBudget(DefaultLimits))
	if err != nil {
		return "", fmt.Errorf("push %s: %w", file, err)
	}
	defer a.file.Close()
	img, err := a.image(ctx)
	if err != nil {
		return "", fmt.Errorf("push %s: %w", file, err)
	}
	if err := needsRoot(img); err != nil {
		return "", fmt.Errorf("push %s: %w", file, err)
	}
	base := remote.DefaultTransport.(*http.Transport).Clone()
	defer base.CloseIdleConnections()
	err = remote.Write(tag, img, remote.WithContext(ctx), remote.WithAuthFromKeychain(authn.DefaultKeychain),
		remote.WithTransport(secureTransport{base}), remote.WithUserAgent("llmsandbox"))
	if err != nil {
		return "", fmt.Errorf("push %s to %s: %w", file, tag, pushError(ctx, err))
	}
	digest, err := img.Digest()
	return tag.Context().Digest(digest.String()).String(), err
}

func needsRoot(img v1.Image) error {
	raw, err := img.RawConfigFile()
	if err != nil {
		return err
	}
	return (&Outside{Config: raw}).NeedsRoot()
}

func pushError(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if te, ok := errors.AsType[*transport.Error](err); ok && (te.StatusCode == http.StatusUnauthorized || te.StatusCode == http.StatusForbidden) {
		return fmt.Errorf("the registry refuses it: log in with `docker login`, or check the name: %w", err)
	}
	return err
}

// image is the one that the tar has, as what is sent.
func (a *archive) image(ctx context.Context) (v1.Image, error) {
	l := layout{open: a.open}
	raw, err := l.read("index.json", maxManifest, "index")
	if err != nil {
		return nil, err
	}
	index, err := v1.ParseIndexManifest(bytes.NewReader(raw))
	if err != nil || len(index.Manifests) != 1 {
		return nil, invalid("its index.json names not one image")
	}
	s := &sending{ctx: ctx, layout: l, kind: index.Manifests[0].MediaType}
	if s.manifest, err = fetchManifest(ctx, l, index.Manifests[0]); err != nil {
		return nil, err
	}
	if isIndex(s.kind, s.manifest) {
		return nil, invalid("it has an image for each of several platforms")
	}
	m, err := v1.ParseManifest(bytes.NewReader(s.manifest))
	if err != nil {
		return nil, invalid("its manifest is not valid (%v)", err)
	}
	s.parsed = m
	return partial.CompressedToImage(s)
}

// sending is an image in a layout. What it is made of is checked by the registry, which knows the digests.
type sending struct {
	ctx      context.Context
	layout   layout
	kind     types.MediaType
	manifest []byte
	parsed   *v1.Manifest
}

func (s *sending) MediaType() (types.MediaType, error) { return s.kind, nil }
func (s *sending) RawManifest() ([]byte, error)        { return s.manifest, nil }

func (s *sending) RawConfigFile() ([]byte, error) { return fetchBlob(s.ctx, s.layout, s.parsed.Config) }

func (s *sending) LayerByDigest(h v1.Hash) (partial.CompressedLayer, error) {
	for _, d := range append(s.parsed.Layers, s.parsed.Config) {
		if d.Digest == h {
			return &sentLayer{s, d}, nil
		}
	}
	return nil, invalid("it has no layer %s", h)
}

type sentLayer struct {
	of *sending
	d  v1.Descriptor
}

func (l *sentLayer) Digest() (v1.Hash, error)            { return l.d.Digest, nil }
func (l *sentLayer) Size() (int64, error)                { return l.d.Size, nil }
func (l *sentLayer) MediaType() (types.MediaType, error) { return l.d.MediaType, nil }
func (l *sentLayer) Compressed() (io.ReadCloser, error)  { return l.of.layout.blob(l.of.ctx, l.d) }
