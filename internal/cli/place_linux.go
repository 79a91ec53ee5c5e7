package cli

import (
	"github.com/llmsandbox/llmsandbox/backend"
	"github.com/llmsandbox/llmsandbox/backend/local"
	"github.com/llmsandbox/llmsandbox/internal/ociimage"
)

func localBackend() (backend.Backend, error) { return local.New(nil), nil }

func imageStore() (*ociimage.Store, error) {
	dir, err := local.New(nil).ImageDir()
	return ociimage.NewStore(dir), err
}
