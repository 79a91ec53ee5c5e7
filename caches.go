package llmsandbox

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/llmsandbox/llmsandbox/backend"
	"github.com/llmsandbox/llmsandbox/internal/language"
	"github.com/llmsandbox/llmsandbox/internal/layertree"
)

// A layerKeeper is a backend that keeps prepared folders where its sandboxes can
// mount them. A backend that is none runs its languages without prepared caches.
type layerKeeper interface {
	// Fingerprint names the program of a language in spec.Image, and changes when the
	// program does. It is "" when it is known that there is none.
	Fingerprint(ctx context.Context, spec backend.Spec, program string) (string, error)
	// Layer returns the folder of that key, which fill has filled once, whichever process
	// asked first. It is "" when there is none and trying again so soon is of no
	// use: fill failed not long ago. A failure of fill is returned as it is.
	Layer(ctx context.Context, key string, fill func(ctx context.Context, dir string) error) (string, error)
}

// cacheVersion changes when the same definition gives another cache.
const cacheVersion = 1

// preparedLayers returns the caches of spec's language as layers, and makes them when
// it does not exist yet. What cannot be made only costs time later, so it is reported through
// spec.Progress and left out.
func preparedLayers(ctx context.Context, b backend.Backend, lang *language.Language, spec backend.Spec) ([]backend.Layer, error) {
	keeper, ok := b.(layerKeeper)
	if !ok {
		return nil, nil
	}
	var layers []backend.Layer
	for _, cache := range lang.Caches {
		toolchain, err := keeper.Fingerprint(ctx, spec, cache.Program)
		if err != nil {
			return nil, fmt.Errorf("open sandbox: %w", err)
		}
		if toolchain == "" {
			continue
		}
		path, err := keeper.Layer(ctx, cacheKey(lang.Name, toolchain, cache), func(ctx context.Context, dir string) error {
			progress(spec, cache.Title+" (once)")
			return fillCache(ctx, b, lang, cache, spec, dir)
		})
		switch {
		case ctx.Err() != nil:
			return nil, context.Cause(ctx)
		case err != nil:
			progress(spec, fmt.Sprintf("%s: %v; going on without it", cache.Title, err))
		case path != "":
			layers = append(layers, backend.Layer{Source: path, Target: cache.Target, Writable: true})
		}
	}
	return layers, nil
}

func progress(spec backend.Spec, message string) {
	if spec.Progress != nil {
		spec.Progress(backend.Progress{Stage: "prepare", Message: message})
	}
}

// cacheKey names all that a cache depends on.
func cacheKey(lang, fingerprint string, cache language.Cache) string {
	return layerKey(lang, struct {
		Version     int
		Lang, Print string
		Cache       language.Cache
	}{cacheVersion, lang, fingerprint, cache})
}

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
	pr.CloseWithError(io.ErrClosedPipe) // ends a sender whose reader is gone
	if serr := <-sent; err == nil && serr != nil && !errors.Is(serr, io.ErrClosedPipe) {
		err = serr
	}
	if err != nil {
		return size, fmt.Errorf("take %s out of the sandbox: %w", from, err)
	}
	return size, nil
}

// lastLine is the last line of a program's output that is not empty.
func lastLine(text string) string {
	text = strings.TrimSpace(text)
	return text[strings.LastIndexByte(text, '\n')+1:]
}

// layerKey is the key of a language's layer that depends on nothing but the fields of a
// struct, which has a JSON form.
func layerKey(lang string, depends any) string {
	b, _ := json.Marshal(depends)
	sum := sha256.Sum256(b)
	return lang + "-" + hex.EncodeToString(sum[:16])
}
