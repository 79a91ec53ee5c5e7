package local

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/llmsandbox/llmsandbox/backend"
)

var _ backend.LibraryKeeper = (*Backend)(nil)

// NoLibraries implements [backend.LibraryKeeper]: there is always a cache folder.
func (b *Backend) NoLibraries() error { return nil }

// Toolchain implements [backend.LibraryKeeper].
func (b *Backend) Toolchain(ctx context.Context, spec backend.Spec, program string, installed []string) (string, error) {
	print, err := b.Fingerprint(ctx, spec, program)
	if err != nil || print == "" || spec.Image != "" && spec.Image != "host" {
		return print, err
	}
	path, _, _ := strings.Cut(print, "\x00")
	return print + "\x00" + changes(filepath.Dir(filepath.Dir(path)), installed), nil
}

// changes tells when what lies at patterns was changed; relative ones are below prefix.
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

// Library implements [backend.LibraryKeeper]. Processes that share the cache folder
// share the layers.
func (b *Backend) Library(ctx context.Context, about backend.LibraryLayer, fill func(ctx context.Context, dir string) error) (string, error) {
	d, err := b.dirs()
	if err != nil {
		return "", err
	}
	if about.Image == "" {
		about.Image = "host"
	}
	return d.store().Library(ctx, about, fill)
}

// ReadLibrary implements [backend.LibraryKeeper].
func (b *Backend) ReadLibrary(ctx context.Context, source string, w io.Writer) error {
	d, err := b.dirs()
	if err != nil {
		return err
	}
	return d.store().ReadLibrary(ctx, source, w)
}

// Libraries implements [backend.LibraryKeeper].
func (b *Backend) Libraries(ctx context.Context) ([]backend.LibraryLayer, error) {
	d, err := b.dirs()
	if err != nil {
		return nil, err
	}
	return d.store().Libraries(ctx)
}

// RemoveLibrary implements [backend.LibraryKeeper].
func (b *Backend) RemoveLibrary(ctx context.Context, key string) error {
	d, err := b.dirs()
	if err != nil {
		return err
	}
	return d.store().RemoveLibrary(ctx, key)
}
