package layers

import (
	"context"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/llmsandbox/llmsandbox/backend"
	"github.com/llmsandbox/llmsandbox/internal/language"
	"github.com/llmsandbox/llmsandbox/internal/layertree"
)

// cacheVersion changes when the same definition gives another cache.
const cacheVersion = 2

// A program is what a sandbox is opened for.
type program struct {
	code  []byte
	files map[string][]byte
}

type programKey struct{}

// ForProgram returns a context in which a sandbox is opened for one program only, which need not wait
// for more of a cache than it uses: its main file and its other files by their paths.
func ForProgram(ctx context.Context, code string, files map[string][]byte) context.Context {
	return context.WithValue(ctx, programKey{}, program{[]byte(code), files})
}

// Caches returns the caches of a language as layers, and makes them where they
// do not exist yet. What cannot be made only costs time later, so it is reported through
// spec.Progress and left out, and so are all of a backend that has no layers.
func (m Maker) Caches(ctx context.Context, lang *language.Language, spec backend.Spec) ([]backend.Layer, error) {
	if len(lang.Caches) == 0 {
		return nil, nil
	}
	kept, err := m.Backend.Layers()
	if err != nil {
		if !errors.Is(err, backend.ErrUnsupported) {
			withoutCache(spec, "caches", err)
		}
		return nil, nil
	}
	_, mounts := kept.(mounter)
	var layers []backend.Layer
	for _, cache := range lang.Caches {
		if cache.Mounted && !mounts {
			continue
		}
		toolchain, err := kept.Toolchain(ctx, spec, cache.Program, cache.Installed)
		if err != nil {
			return nil, fmt.Errorf("open sandbox: %w", err)
		}
		if toolchain == "" {
			continue
		}
		c := cacheMaker{Maker: m, kept: kept, lang: lang, toolchain: toolchain}
		if p, ok := ctx.Value(programKey{}).(program); ok && cache.Part != nil && cache.Enough(p.code, p.files) && !c.exists(ctx, cache) {
			cache = *cache.Part
		}
		source, err := c.get(ctx, cache, spec)
		switch {
		case ctx.Err() != nil:
			return nil, context.Cause(ctx)
		case err != nil:
			withoutCache(spec, cache.Title, err)
		case source != "":
			layers = append(layers, backend.Layer{Source: source, Target: cache.Target, Writable: true})
		}
	}
	return layers, nil
}

// A mounter has sandboxes mount layers where they are, so that their size costs nothing.
type mounter interface{ MountsLayers() }

// A cacheMaker makes caches of a language for one toolchain.
type cacheMaker struct {
	Maker
	kept      backend.Layers
	lang      *language.Language
	toolchain string
}

// exists reports whether a cache is complete. It does not wait for one that is being made.
func (m cacheMaker) exists(ctx context.Context, cache language.Cache) bool {
	list, err := m.kept.List(ctx)
	key := cacheKey(m.lang.Name, m.toolchain, cache)
	return err == nil && slices.ContainsFunc(list, func(l backend.LayerInfo) bool { return l.Key == key })
}

// get returns the source of a cache's layer, and makes that where it does not exist yet.
func (m cacheMaker) get(ctx context.Context, cache language.Cache, spec backend.Spec) (string, error) {
	about := backend.LayerInfo{Key: cacheKey(m.lang.Name, m.toolchain, cache), Language: m.lang.Name, Cache: cache.Name, Image: spec.Image}
	return m.once(ctx, about.Key, spec.Progress, func(ctx context.Context, report func(backend.Progress)) (string, error) {
		return m.kept.Get(ctx, about, func(ctx context.Context, dir string) error {
			spec := spec
			spec.Progress = report
			end := backend.BeginStep(report, stagePrepare, cache.Title)
			err := m.fill(ctx, cache, spec, dir)
			if err == nil {
				end(nil)
			}
			return err
		})
	})
}

// withoutCache reports a cache that could not be prepared.
func withoutCache(spec backend.Spec, title string, err error) {
	if spec.Progress != nil {
		spec.Progress(backend.Progress{Stage: stagePrepare, Message: title, Done: true, Error: err.Error() + "; going on without"})
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

// fill runs a cache's steps in a sandbox of its own, which no user's code has
// ever seen, and takes what they made out into dir. A part that exists, which such steps have made, too,
// is not made again.
func (m cacheMaker) fill(ctx context.Context, cache language.Cache, spec backend.Spec, dir string) (err error) {
	ctx, cancel := context.WithTimeout(ctx, fillTimeout)
	defer cancel()
	own := backend.Spec{
		Image: spec.Image, Language: m.lang.Name, BestEffort: true, Progress: spec.Progress,
		Limits: backend.Limits{Memory: fillMemory, PIDs: fillPIDs, Disk: fillDisk},
	}
	if cache.Part != nil && m.exists(ctx, *cache.Part) {
		if part, err := m.get(ctx, *cache.Part, spec); err == nil && part != "" {
			own.Layers = []backend.Layer{{Source: part, Target: cache.Target, Writable: true}}
		}
	}
	s, err := m.Open(ctx, m.Backend, m.lang, own, Limits{Output: fillOutput, Timeout: fillTimeout})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	target := path.Join(s.Guest().TempDir, strings.TrimPrefix(cache.Target, tempDir))
	plan := relocate(language.Plan{Steps: cache.Fill}, cache.Target, target)
	output := newToolOutput(spec.Progress, backend.Progress{Stage: stagePrepare, Message: cache.Title})
	res, err := s.Run(ctx, Run{Output: output, Plan: steps(plan.Steps...)})
	if err != nil {
		return err
	}
	if res.Status != StatusOK {
		return fmt.Errorf("preparing it ended as %s: %s%s", res.Status, res.Reason, lastLine(output.last()))
	}
	return takeOut(ctx, s, target, dir, layertree.Options{MaxBytes: maxCacheBytes, MaxFiles: maxCacheFiles, Shared: !stay(m.kept)})
}

// lastLine is the last line of a program's output that is not empty.
func lastLine(text string) string {
	text = strings.TrimSpace(text)
	return text[strings.LastIndexByte(text, '\n')+1:]
}
