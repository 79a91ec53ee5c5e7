package local

import (
	"fmt"
	"path/filepath"

	"github.com/llmsandbox/llmsandbox/internal/layerstore"
	"github.com/llmsandbox/llmsandbox/internal/statedir"
)

// dirs are the backend's own directories, each private to its owner.
type dirs struct {
	state     string
	sandboxes string // below state
	empty     string // below state; nothing is ever put into it
	cache     string
}

func prepareDirs(o Options) (dirs, error) {
	state, err := stateDir(o)
	if err != nil {
		return dirs{}, err
	}
	cache, err := cacheDir(o)
	if err != nil {
		return dirs{}, err
	}
	d := dirs{state: state, sandboxes: filepath.Join(state, "sandboxes"), empty: filepath.Join(state, "empty"), cache: cache}
	for _, p := range []struct{ path, use, variable string }{
		{d.state, "state folder", "LLMSANDBOX_STATE_DIR"},
		{d.sandboxes, "state folder", "LLMSANDBOX_STATE_DIR"},
		{d.empty, "state folder", "LLMSANDBOX_STATE_DIR"},
		{d.cache, "cache folder", "LLMSANDBOX_CACHE_DIR"},
	} {
		if err := layerstore.MakePrivate(p.path); err != nil {
			return dirs{}, fmt.Errorf("%s: %w: set %s to a folder of your own that can be written", p.use, err, p.variable)
		}
	}
	return d, nil
}

func stateDir(o Options) (string, error) {
	if o.StateDir != "" {
		return filepath.Abs(o.StateDir)
	}
	return statedir.Default()
}

func cacheDir(o Options) (string, error) {
	if o.CacheDir != "" {
		return filepath.Abs(o.CacheDir)
	}
	return layerstore.DefaultDir()
}
