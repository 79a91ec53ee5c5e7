package backend

import (
	"context"
	"io"
	"time"
)

// A LibraryLayer describes a layer of installed libraries.
type LibraryLayer struct {
	// Key names the layer, of [a-z0-9-]: it follows from all that the layer depends on.
	Key       string    `json:"key"`
	Language  string    `json:"language"`
	Libraries []string  `json:"libraries"` // canonical, sorted
	Image     string    `json:"image"`     // as asked for; empty means the backend's default
	Created   time.Time `json:"created"`
	Size      int64     `json:"size_bytes"`
	// LastUsed is when a sandbox last got it, within an hour; zero when not known.
	LastUsed time.Time `json:"last_used,omitzero"`
	// InUse tells that a sandbox has it now.
	InUse bool `json:"in_use"`
}

// A LibraryKeeper is a backend that keeps layers of installed libraries where its
// sandboxes can mount them. Its methods may be called concurrently, and by several
// processes.
type LibraryKeeper interface {
	Backend
	// NoLibraries tells why this backend cannot keep libraries as it is set up; nil when
	// it can. It wraps ErrUnsupported.
	NoLibraries() error
	// Toolchain names the program of a language in spec.Image and what was installed
	// beside it, and changes when one of them does. Where there is no image, installed are
	// the places, patterns as in filepath.Match, absolute or below the folder above the
	// program's. It is "" when it is known that there is no such program.
	Toolchain(ctx context.Context, spec Spec, program string, installed []string) (string, error)
	// Library returns the layer of about.Key as the Source of a [Layer]. When it is not
	// there, fill makes it in an empty folder of this machine, once whoever asks: others
	// wait. Until fill has succeeded nobody sees anything of it, and when it fails
	// nothing is left and its error is returned as it is.
	Library(ctx context.Context, about LibraryLayer, fill func(ctx context.Context, dir string) error) (source string, err error)
	// ReadLibrary writes a layer's files to w as a tar stream, with its symbolic links.
	ReadLibrary(ctx context.Context, source string, w io.Writer) error
	// Libraries lists the layers that are whole, sorted by key.
	Libraries(ctx context.Context) ([]LibraryLayer, error)
	// RemoveLibrary removes a layer. It fails with ErrLocked while a sandbox uses it, and
	// with ErrLibraryNotFound when there is none of that key.
	RemoveLibrary(ctx context.Context, key string) error
}
