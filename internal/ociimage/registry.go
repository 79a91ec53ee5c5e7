package ociimage

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/remote/transport"

	"github.com/llmsandbox/llmsandbox/backend"
)

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
	var te *transport.Error
	if errors.As(err, &te) {
		switch te.StatusCode {
		case http.StatusNotFound:
			return fmt.Errorf("the registry does not have it (%v): %w", err, backend.ErrImageNotFound)
		case http.StatusUnauthorized, http.StatusForbidden:
			return fmt.Errorf("the registry refuses access; log in with `docker login`, or check the name (%v): %w", err, backend.ErrImageNotFound)
		}
	}
	return fmt.Errorf("cannot fetch from the registry (%v): %w", err, backend.ErrImageNotFound)
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
