package llmsandbox

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/llmsandbox/llmsandbox/internal/agentproto"
)

// CommitOptions say how an image is made of a sandbox.
type CommitOptions struct {
	// Overwrite allows the tag to be taken from the image that has it. It must be the
	// tag again, letter by letter, so that no image is overwritten by mistake, least of all the
	// sandbox's own, without naming it.
	Overwrite string
}

// A CommitResult tells what image was made.
type CommitResult struct {
	ID string // the image's id: the digest of its configuration, unless an engine has another
	// Skipped names what was left out (sockets, other special files, what cannot be read, names
	// that delete others in an image), each with its reason. It is complete up to 100 of them.
	Skipped []string
}

// Commit makes an image under a new tag of the sandbox's image and its working directory,
// and of its root file system where that could be written to, and tells
// its id. A sandbox opened from that image starts with those files. Processes, the
// temporary directory and the environment are not part of it. opts may be nil.
//
// On the local backend and on Kubernetes, the tag is the path of a file that ends in ".tar". It is an OCI layout,
// which Options.Image and `docker load` take, of the image's layers and one with what was
// written. The same writes give the same id. The layers are read where the image is from, which must still have it;
// of a pod, that is the image's registry, else it fails with ErrImageNotFound. What code changes while it is read may be
// in the image half-changed. Of a sandbox with the host's toolchains, it has only what was written, and only Options.Image
// takes it, where the host has the same files.
//
// It fails with ErrUnsupported where the sandbox is in an existing pod, and with ErrInvalid for a tag that exists and is not to be overwritten,
// or if the host's toolchains have changed since the sandbox was opened.
func (s *Sandbox) Commit(ctx context.Context, tag string, opts *CommitOptions) (CommitResult, error) {
	if err := s.link.Alive(); err != nil {
		return CommitResult{}, err
	}
	opts = cmp.Or(opts, &CommitOptions{})
	client, err := s.link.Client(ctx)
	if err != nil {
		return CommitResult{}, err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	pr, pw := io.Pipe()
	sent := make(chan error, 1)
	var taken agentproto.TarResult
	go func() {
		var err error
		taken, err = client.TarTree(ctx, s.Workdir(), strings.TrimPrefix(s.Workdir(), "/"), pw)
		pw.CloseWithError(err)
		sent <- err
	}()
	id, skipped, err := s.machine.Commit(ctx, tag, opts.Overwrite, pr)
	pr.CloseWithError(io.ErrClosedPipe) // ends a sender whose reader is gone
	if serr := <-sent; err == nil && serr != nil && !errors.Is(serr, io.ErrClosedPipe) {
		err = serr
	}
	if err != nil {
		return CommitResult{}, fmt.Errorf("commit sandbox %s: %w", s.ID(), err)
	}
	return CommitResult{ID: id, Skipped: append(taken.Skipped, skipped...)}, nil
}
