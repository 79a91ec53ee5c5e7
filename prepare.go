package llmsandbox

import (
	"context"
	"fmt"

	"github.com/llmsandbox/llmsandbox/backend"
	"github.com/llmsandbox/llmsandbox/internal/language"
)

// A layerKeeper is a backend that keeps prepared folders where its sandboxes can
// mount them. A backend that is none runs its languages without prepared caches.
type layerKeeper interface {
	// Fingerprint names the program of a language in spec.Image, and changes when the
	// program does. It is "" when it is known that there is none.
	Fingerprint(ctx context.Context, spec backend.Spec, program string) (string, error)
	// Layer returns the folder of that key, which fill has filled once, whoever
	// asked first. It is "" when there is none and trying again so soon is of no
	// use: fill failed not long ago. A failure of fill is returned as it is.
	Layer(ctx context.Context, key string, fill func(ctx context.Context, dir string) error) (string, error)
}

// cacheVersion changes when the same definition gives another cache.
const cacheVersion = 1

// preparedLayers returns the caches of spec's language as layers, and makes them when
// nobody has before. What cannot be made only costs time later, so it is told through
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
