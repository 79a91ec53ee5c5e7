package cli

import (
	"github.com/llmsandbox/llmsandbox/backend"
	"github.com/llmsandbox/llmsandbox/backend/local"
	"github.com/llmsandbox/llmsandbox/backend/local/image"
)

func localBackend() (backend.Backend, error) { return local.New(local.Options{}), nil }

func imageStore() (*image.Store, error) { return local.New(local.Options{}).Images() }
