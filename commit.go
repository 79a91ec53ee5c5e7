package llmsandbox

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/llmsandbox/llmsandbox/backend"
)

// CommitOptions say how an image is made of a sandbox.
type CommitOptions struct {
	// Overwrite allows the tag to be taken from the image that has it. It must be the
	// tag again, letter by letter, so that nobody overwrites an image, least of all the
	// sandbox's own, without naming it.
	Overwrite string
}

// Commit makes an image under a new tag of the sandbox's image and its working folder,
// and of its root file system where that could be written to, and returns the image's
// id. A sandbox opened from that image starts with those files. Processes, the
// temporary folder and the environment are not part of it. opts may be nil.
//
// It fails with ErrUnsupported where the backend keeps no images, and with ErrInvalid for
// a tag that exists and is not to be overwritten.
func (s *Sandbox) Commit(ctx context.Context, tag string, opts *CommitOptions) (string, error) {
	if err := s.alive(); err != nil {
		return "", err
	}
	m, ok := s.machine.(backend.Committer)
	if !ok {
		return "", fmt.Errorf("commit sandbox %s: %w: the %s backend makes no images of sandboxes: use docker or podman", s.ID(), ErrUnsupported, s.backend)
	}
	if opts == nil {
		opts = &CommitOptions{}
	}
	client, err := s.link.get(ctx)
	if err != nil {
		return "", err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	pr, pw := io.Pipe()
	sent := make(chan error, 1)
	go func() {
		result, err := client.TarOut(ctx, s.Workdir(), strings.TrimPrefix(s.Workdir(), "/"), pw)
		if err == nil && len(result.Skipped) > 0 {
			err = fmt.Errorf("take the working folder out of the sandbox: %s", result.Skipped[0])
		}
		pw.CloseWithError(err)
		sent <- err
	}()
	id, err := m.Commit(ctx, tag, opts.Overwrite, pr)
	pr.CloseWithError(io.ErrClosedPipe) // a sender that nobody reads from ends
	if serr := <-sent; err == nil && serr != nil && !errors.Is(serr, io.ErrClosedPipe) {
		err = serr
	}
	if err != nil {
		return "", fmt.Errorf("commit sandbox %s: %w", s.ID(), err)
	}
	return id, nil
}
