package client

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/llmsandbox/llmsandbox"
	"github.com/llmsandbox/llmsandbox/internal/apitypes"
	"github.com/llmsandbox/llmsandbox/internal/errclass"
)

// OwnImage begins the names of the project's images in llmsandbox.Options.Image: "project:tools" is the one that was made by the tag tools.
const OwnImage = apitypes.OwnImage

// Commit makes an image of the sandbox in the key's project as [llmsandbox.Sandbox.Commit] does: the tag is a name such as tools or tools:2, of lower-case letters,
// digits and _.-. It fails with llmsandbox.ErrImageExists for the name of another one, unless the options have it overwritten.
func (s *Sandbox) Commit(ctx context.Context, tag string, opts *llmsandbox.CommitOptions) (llmsandbox.CommitResult, error) {
	opts = cmp.Or(opts, &llmsandbox.CommitOptions{})
	if opts.Overwrite != "" && opts.Overwrite != tag {
		return llmsandbox.CommitResult{}, fmt.Errorf("commit sandbox %s: %w: what may be overwritten is %q, not the tag asked for", s.id, llmsandbox.ErrInvalid, opts.Overwrite)
	}
	var made apitypes.MadeImage
	r := &request{method: http.MethodPost, path: "/commit", body: &apitypes.NewImage{Name: tag, Replace: opts.Overwrite != ""}, want: http.StatusCreated}
	if err := s.ask(ctx, r, &made); err != nil {
		return llmsandbox.CommitResult{}, fmt.Errorf("commit sandbox %s: %w", s.id, err)
	}
	return llmsandbox.CommitResult{ID: made.ID, Skipped: made.Skipped}, nil
}

// An Image is one that was made of a sandbox of the key's project.
type Image struct {
	Name    string
	ID      string // the digest of its configuration
	Created time.Time
	Size    int64 // of all its layers, in bytes
	Labels  map[string]string
}

// ListImages returns the images of the key's project, sorted by name.
func (c *Client) ListImages(ctx context.Context) ([]Image, error) {
	var list apitypes.Images
	err := c.get(ctx, "images", &list)
	return apitypes.All(list.Images, func(i apitypes.Image) Image { return Image(i) }), err
}

// maxImageName bounds the name of an image, in bytes.
const maxImageName = 127

// RemoveImage removes an image of the key's project. It fails with llmsandbox.ErrImageNotFound, and with llmsandbox.ErrImageInUse while a sandbox that was made
// from it lives.
func (c *Client) RemoveImage(ctx context.Context, name string) error {
	if len(name) > maxImageName || strings.Trim(name, "abcdefghijklmnopqrstuvwxyz0123456789_.:-") != "" || strings.Trim(name, ".") == "" { // no other goes into the path
		return errclass.Errorf(llmsandbox.ErrImageNotFound, "remove image %q: no image has such a name", cut(name, maxImageName))
	}
	if err := c.call(ctx, &request{method: http.MethodDelete, path: "/v1/images/" + name, want: http.StatusNoContent}, nil); err != nil {
		return fmt.Errorf("remove image %q: %w", name, err)
	}
	return nil
}
