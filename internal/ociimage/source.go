package ociimage

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"sort"
	"strings"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/remote/transport"
	"github.com/google/go-containerregistry/pkg/v1/types"

	"github.com/llmsandbox/llmsandbox/backend"
	"github.com/llmsandbox/llmsandbox/internal/errclass"
)

// A candidate is an image somewhere else, of which only the config is here yet.
type candidate struct {
	digest string // of what the name meant
	id     v1.Hash
	file   *v1.ConfigFile
	raw    []byte // what id is the digest of
	config Config
	layers []layer // bottom first
	close  func()  // releases what fetching the layers needed
}

// A layer can be fetched. Its bytes are hostile until their digests were checked.
type layer struct {
	diffID v1.Hash
	digest v1.Hash // of the compressed bytes; zero when it is not stated
	size   int64   // of the compressed bytes; -1 when it is not stated
	open   func(context.Context) (io.ReadCloser, error)
}

// A fetcher gets the parts of an image that follow the OCI or Docker manifest.
type fetcher interface {
	// manifest returns the bytes of a manifest or index, not yet verified.
	manifest(ctx context.Context, d v1.Descriptor) ([]byte, error)
	// blob opens a config or layer, not yet verified.
	blob(ctx context.Context, d v1.Descriptor) (io.ReadCloser, error)
}

// load follows top, which has the bytes raw, down to the image for the platform.
func load(ctx context.Context, f fetcher, top v1.Descriptor, raw []byte, want v1.Platform) (*candidate, error) {
	d := top
	for depth := 0; isIndex(d.MediaType, raw); depth++ {
		if depth == 3 {
			return nil, invalid("indexes are nested too deep")
		}
		index, err := v1.ParseIndexManifest(bytes.NewReader(raw))
		if err != nil {
			return nil, invalid("the index is not valid (%v)", err)
		}
		if d, err = choose(index.Manifests, want); err != nil {
			return nil, err
		}
		if raw, err = fetchManifest(ctx, f, d); err != nil {
			return nil, err
		}
	}
	m, err := v1.ParseManifest(bytes.NewReader(raw))
	if err != nil {
		return nil, invalid("the manifest is not valid (%v)", err)
	}
	if m.SchemaVersion != 2 || !m.Config.MediaType.IsConfig() {
		return nil, invalid("the manifest is not that of a container image (schema %d, config %.80q)", m.SchemaVersion, m.Config.MediaType)
	}
	rawConfig, err := fetchBlob(ctx, f, m.Config)
	if err != nil {
		return nil, err
	}
	c := &candidate{digest: top.Digest.String()}
	if err := c.setConfig(rawConfig, len(m.Layers), want); err != nil {
		return nil, err
	}
	for i, l := range m.Layers {
		if err := checkDigest(l.Digest); err != nil {
			return nil, err
		}
		if l.Size < 0 || strings.HasSuffix(string(l.MediaType), "+encrypted") || !l.MediaType.IsLayer() {
			return nil, invalid("layer %d is of kind %.80q, which cannot be unpacked", i+1, l.MediaType)
		}
		c.layers = append(c.layers, layer{
			diffID: c.file.RootFS.DiffIDs[i], digest: l.Digest, size: l.Size,
			open: func(ctx context.Context) (io.ReadCloser, error) { return f.blob(ctx, l) },
		})
	}
	return c, nil
}

// setConfig checks the config, and that it is made for the platform and for so many layers.
func (c *candidate) setConfig(raw []byte, layers int, want v1.Platform) error {
	file, config, err := parseConfig(raw)
	if err != nil {
		return err
	}
	c.file, c.raw, c.config, c.id = file, raw, config, digestOf(raw)
	if have := c.platform(); !have.Satisfies(want) {
		return fmt.Errorf("image is for %.80s, not for %s: %w", have, want, backend.ErrImageNotFound)
	}
	if len(file.RootFS.DiffIDs) != layers {
		return invalid("the manifest has %d layers, the config %d", layers, len(file.RootFS.DiffIDs))
	}
	return nil
}

func (c *candidate) platform() v1.Platform {
	return v1.Platform{OS: c.file.OS, Architecture: c.file.Architecture, Variant: c.file.Variant}
}

// choose picks the manifest for the platform out of an index.
func choose(list []v1.Descriptor, want v1.Platform) (v1.Descriptor, error) {
	var offered []string
	var plain []v1.Descriptor // without a platform: the config has it
	for _, d := range list {
		switch {
		case !d.MediaType.IsImage() && !d.MediaType.IsIndex():
		case d.Platform == nil:
			plain = append(plain, d)
		case d.Platform.Satisfies(want):
			return d, nil
		default:
			offered = append(offered, d.Platform.String())
		}
	}
	if len(plain) == 1 && len(offered) == 0 {
		return plain[0], nil
	}
	sort.Strings(offered)
	if len(offered) > 20 {
		offered = append(offered[:20], "...")
	}
	return v1.Descriptor{}, fmt.Errorf("image is not offered for %s, only for %.400q: %w", want, offered, backend.ErrImageNotFound)
}

func isIndex(mt types.MediaType, raw []byte) bool {
	return mt.IsIndex() || (mt == "" && bytes.Contains(raw, []byte(`"manifests"`)))
}

func fetchManifest(ctx context.Context, f fetcher, d v1.Descriptor) ([]byte, error) {
	if err := checkDigest(d.Digest); err != nil {
		return nil, err
	}
	raw, err := f.manifest(ctx, d)
	if err != nil {
		return nil, err
	}
	return raw, verify(raw, d.Digest, "manifest")
}

func fetchBlob(ctx context.Context, f fetcher, d v1.Descriptor) ([]byte, error) {
	if err := checkDigest(d.Digest); err != nil {
		return nil, err
	}
	rc, err := f.blob(ctx, d)
	if err != nil {
		return nil, err
	}
	defer rc.Close()
	raw, err := readAll(rc, maxConfig, "config")
	if err != nil {
		return nil, err
	}
	return raw, verify(raw, d.Digest, "config")
}

func readAll(r io.Reader, limit int64, what string) ([]byte, error) {
	raw, err := io.ReadAll(io.LimitReader(r, limit+1))
	if err != nil {
		return nil, fmt.Errorf("read the image's %s (%v): %w", what, err, backend.ErrImageNotFound)
	}
	if int64(len(raw)) > limit {
		return nil, invalid("its %s is larger than %d bytes", what, limit)
	}
	return raw, nil
}

func verify(raw []byte, want v1.Hash, what string) error {
	if got := digestOf(raw); got != want {
		return invalid("its %s has the digest %s, not %s", what, got, want)
	}
	return nil
}

func digestOf(raw []byte) v1.Hash {
	h, _, _ := v1.SHA256(bytes.NewReader(raw)) // reading memory does not fail
	return h
}

func invalid(format string, args ...any) error {
	return fmt.Errorf("%s: %w", fmt.Sprintf(format, args...), backend.ErrImageInvalid)
}

// registry fetches from a registry, with the credentials of the user's Docker
// configuration.
type registry struct {
	repo   name.Repository
	puller *remote.Puller
}

func loadRegistry(ctx context.Context, ref name.Reference, want v1.Platform) (*candidate, error) {
	base := remote.DefaultTransport.(*http.Transport).Clone()
	puller, err := remote.NewPuller(
		remote.WithAuthFromKeychain(authn.DefaultKeychain),
		remote.WithTransport(secureTransport{base}),
		remote.WithUserAgent("llmsandbox"),
	)
	if err != nil {
		return nil, err
	}
	desc, err := puller.Get(ctx, ref)
	if err != nil {
		base.CloseIdleConnections()
		return nil, registryError(ctx, err)
	}
	c, err := load(ctx, &registry{ref.Context(), puller}, desc.Descriptor, desc.Manifest, want)
	if err != nil {
		base.CloseIdleConnections()
		return nil, err
	}
	c.close = base.CloseIdleConnections
	return c, nil
}

func (r *registry) manifest(ctx context.Context, d v1.Descriptor) ([]byte, error) {
	desc, err := r.puller.Get(ctx, r.repo.Digest(d.Digest.String()))
	if err != nil {
		return nil, registryError(ctx, err)
	}
	return desc.Manifest, nil
}

func (r *registry) blob(ctx context.Context, d v1.Descriptor) (io.ReadCloser, error) {
	l, err := r.puller.Layer(ctx, r.repo.Digest(d.Digest.String()))
	if err != nil {
		return nil, registryError(ctx, err)
	}
	rc, err := l.Compressed()
	if err != nil {
		return nil, registryError(ctx, err)
	}
	return rc, nil
}

// registryError distinguishes a missing image, a refused one and a broken connection.
func registryError(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return fmt.Errorf("fetch the image: %w", context.Cause(ctx))
	}
	if te, ok := errors.AsType[*transport.Error](err); ok {
		switch te.StatusCode {
		case http.StatusNotFound:
			return errclass.Errorf(backend.ErrImageNotFound, "the registry does not have it: %w", err)
		case http.StatusUnauthorized, http.StatusForbidden:
			return errclass.Errorf(backend.ErrImageNotFound, "the registry refuses access; log in with `docker login`, or check the name: %w", err)
		}
	}
	return errclass.Errorf(backend.ErrImageNotFound, "cannot fetch from the registry; check its name and the network: %w", err)
}

// secureTransport allows unencrypted HTTP to loopback only, also after a redirect.
type secureTransport struct{ base *http.Transport }

func (t secureTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.URL.Scheme != "https" && !isLoopback(r.URL.Hostname()) {
		return nil, fmt.Errorf("registry host %s offers only unencrypted http, which is allowed on loopback only", r.URL.Host)
	}
	return t.base.RoundTrip(r)
}

func isLoopback(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}
