package local

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/llmsandbox/llmsandbox/backend"
	"github.com/llmsandbox/llmsandbox/internal/hostroot"
	"github.com/llmsandbox/llmsandbox/internal/layerstore"
)

// Layers implements [backend.Backend]. Processes that share the cache directory share them.
func (b *Backend) Layers() (backend.Layers, error) {
	d, err := b.dirs()
	if err != nil {
		return nil, err
	}
	return layers{d.store(), b}, nil
}

// store keeps layers in the cache directory.
func (d dirs) store() layerstore.Store { return layerstore.Store{Dir: d.cache} }

// layers are those of the store. They know toolchains of the host.
type layers struct {
	layerstore.Store
	backend *Backend
}

// MountsLayers tells that a layer's size costs a sandbox nothing.
func (layers) MountsLayers() {}

// LayersStay reports whether sandboxes have layers where they are.
func (l layers) LayersStay() bool { return l.backend.inPlace() }

// Get is [backend.Layers].Get. A layer that needs no image says that it is of the host's
// programs.
func (l layers) Get(ctx context.Context, about backend.LayerInfo, fill func(ctx context.Context, dir string) error) (string, error) {
	if about.Image == "" {
		about.Image = "host"
	}
	return l.Store.Get(ctx, about, fill)
}

// Toolchain is [backend.Layers].Toolchain. It runs no program: of the host's own toolchains it
// names the file that it is, of an image the whole image, which is fetched when it is not
// there.
func (l layers) Toolchain(ctx context.Context, spec backend.Spec, program string, installed []string) (string, error) {
	if ofHost(spec) {
		toolchain := hostToolchain(spec.Language, program, installed)
		if l.LayersStay() && toolchain != "" { // tools write into files where they are
			toolchain = isolationProcess + "\x00" + toolchain
		}
		return toolchain, nil
	}
	img, err := l.backend.image(ctx, spec)
	if err != nil {
		return "", err
	}
	return img.ID + "\x00" + program, img.Release()
}

func hostToolchain(language, program string, installed []string) string {
	path := hostroot.Locate(language, program, hostroot.Options{})
	if path == "" {
		return ""
	}
	info, err := os.Stat(path)
	if err != nil {
		return "" // it went away just now
	}
	return path + "\x00" + strconv.FormatInt(info.Size(), 10) + "\x00" + strconv.FormatInt(info.ModTime().UnixNano(), 10) +
		"\x00" + changes(filepath.Dir(filepath.Dir(path)), installed)
}

// changes reports when what lies at patterns was changed; relative ones are below prefix.
func changes(prefix string, patterns []string) string {
	var times strings.Builder
	for _, pattern := range patterns {
		if !filepath.IsAbs(pattern) {
			pattern = filepath.Join(prefix, pattern)
		}
		found, _ := filepath.Glob(pattern) // a prefix that is a pattern itself matches nothing
		for _, path := range found {
			if info, err := os.Stat(path); err == nil {
				fmt.Fprintf(&times, "%s\x00%d\x00", path, info.ModTime().UnixNano())
			}
		}
	}
	return times.String()
}
