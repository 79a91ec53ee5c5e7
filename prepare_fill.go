package llmsandbox

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/llmsandbox/llmsandbox/backend"
	"github.com/llmsandbox/llmsandbox/internal/language"
	"github.com/llmsandbox/llmsandbox/internal/layertree"
)

// Limits of a preparation. It runs nothing but the toolchain, so they are only there
// against one that is broken.
const (
	fillMemory  = 2 << 30
	fillPIDs    = 1024
	fillDisk    = 4 << 30
	fillTimeout = 10 * time.Minute
	fillOutput  = 1 << 20

	// The toolchain of an image may make anything.
	maxCacheBytes = 2 << 30
	maxCacheFiles = 200_000
)

// fillCache runs a cache's steps in a sandbox of its own, which no user's code has
// ever seen, and takes what they made out into dir.
func fillCache(ctx context.Context, b backend.Backend, lang *language.Language, cache language.Cache, spec backend.Spec, dir string) (err error) {
	ctx, cancel := context.WithTimeout(ctx, fillTimeout)
	defer cancel()
	machine, err := b.Create(ctx, backend.Spec{
		ID: newID(), Image: spec.Image, Language: lang.Name, BestEffort: true, Progress: spec.Progress,
		Limits: backend.Limits{Memory: fillMemory, PIDs: fillPIDs, Disk: fillDisk},
	})
	if err != nil {
		return err
	}
	s := newSandbox(b, machine, lang, Limits{Memory: fillMemory, Output: fillOutput, Timeout: fillTimeout})
	defer func() { err = errors.Join(err, s.Close()) }()
	r, err := s.newExecution(execution{})
	if err != nil {
		return err
	}
	r.language = lang
	res, err := r.result(ctx, r.execute(ctx, language.Plan{Steps: cache.Fill}))
	if err != nil {
		return err
	}
	if res.Status != StatusOK {
		return fmt.Errorf("preparing it ended as %s: %s%s", res.Status, res.Reason, lastLine(res.Stderr))
	}
	_, err = s.takeOut(ctx, cache.Target, dir, layertree.Options{MaxBytes: maxCacheBytes, MaxFiles: maxCacheFiles, Shared: true})
	return err
}

// takeOut copies a folder of the sandbox into a folder of the host, whole or not at all.
func (s *Sandbox) takeOut(ctx context.Context, from, to string, o layertree.Options) (layertree.Size, error) {
	client, err := s.link.get(ctx)
	if err != nil {
		return layertree.Size{}, err
	}
	take := client.TarOut
	if o.Links {
		take = client.TarTree
	}
	o.At = from
	pr, pw := io.Pipe()
	sent := make(chan error, 1)
	go func() {
		result, err := take(ctx, from, "", pw)
		if err == nil && len(result.Skipped) > 0 {
			err = fmt.Errorf("it cannot be taken as it is: %s", result.Skipped[0])
		}
		pw.CloseWithError(err)
		sent <- err
	}()
	size, err := layertree.Unpack(pr, to, o)
	pr.CloseWithError(io.ErrClosedPipe) // a sender that nobody reads from ends
	if serr := <-sent; err == nil && serr != nil && !errors.Is(serr, io.ErrClosedPipe) {
		err = serr
	}
	if err != nil {
		return size, fmt.Errorf("take %s out of the sandbox: %w", from, err)
	}
	return size, nil
}

// lastLine is the last line of a program's words with something in it.
func lastLine(text string) string {
	text = strings.TrimSpace(text)
	return text[strings.LastIndexByte(text, '\n')+1:]
}
