package local

import (
	"context"

	"github.com/llmsandbox/llmsandbox/internal/ociimage"
)

// PushImage sends the image in a file that Sandbox.Commit has made to a registry, under a name such as registry.example/tools:2, and returns the
// name by which it is found there whatever the tag comes to mean. The credentials are those of the user's Docker configuration. Only a registry on
// loopback may be without encryption. It fails with backend.ErrInvalid for what is no such name, and with backend.ErrImageInvalid or
// backend.ErrImageNotFound for what is no such file.
func PushImage(ctx context.Context, file, tag string) (string, error) {
	return ociimage.Push(ctx, file, tag)
}
