package llmsandbox

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/llmsandbox/llmsandbox/backend"
)

// errNotCached is why a request fails that may not go to the network.
var errNotCached = errors.New("they are not in the cache, and the network is not to be used: install them once without --offline, or give a folder that has them")

// layer returns the request's layer, made when nobody has before.
func (q *libraryRequest) layer(ctx context.Context) (key, source string, err error) {
	toolchain, err := q.keeper.Toolchain(ctx, q.spec, q.language.Libraries.Program, q.language.Libraries.Installed)
	if err != nil {
		return "", "", fmt.Errorf("install libraries: %w", err)
	}
	if toolchain == "" {
		return "", "", q.fail(fmt.Errorf("%s is not in this place: %w: %s", q.language.Libraries.Program, ErrToolchain, q.language.Install))
	}
	var local string
	if q.options.Local != "" {
		if local, err = digestFolder(ctx, q.options.Local); err != nil {
			return "", "", fmt.Errorf("folder of libraries: %w", err)
		}
	}
	key = q.key(toolchain, local)
	source, err = installing.do(ctx, q.keeper, key, func() (string, error) {
		return q.keeper.Library(ctx, q.about(key), func(ctx context.Context, dir string) error {
			if q.options.Offline && q.options.Local == "" {
				return q.fail(errNotCached)
			}
			q.progress(q.language.Title + ": " + strings.Join(q.libraries, ", "))
			return q.fill(ctx, libraryPrefix+key, dir)
		})
	})
	return key, source, err
}

// addTo makes a sandbox that is yet to be opened have the libraries; a nil request has none.
func (q *libraryRequest) addTo(ctx context.Context, spec *backend.Spec) error {
	if q == nil {
		return nil
	}
	key, source, err := q.layer(ctx)
	if err != nil {
		return err
	}
	dir := libraryPrefix + key
	spec.Layers = append(spec.Layers, backend.Layer{Source: source, Target: dir})
	spec.Env = append(spec.Env, librariesVariable+"="+dir)
	return nil
}
