package backend

import (
	"context"
	"io"
	"time"
)

// A LayerInfo describes a layer: a directory that is filled once and that many sandboxes
// get. It is a prepared cache of a toolchain, or installed libraries.
type LayerInfo struct {
	// Key names the layer, of [a-z0-9-]: it follows from all that the layer depends on.
	Key       string   `json:"key"`
	Language  string   `json:"language"`
	Cache     string   `json:"cache,omitempty"`     // what a prepared cache is; empty for libraries
	Libraries []string `json:"libraries,omitempty"` // canonical, sorted
	// Package reports whether Libraries is one package, without those that it needs, which is part of lists.
	Package bool `json:"package,omitempty"`
	// Environment is the name of the environment that the libraries are, if they are one.
	Environment string    `json:"environment,omitempty"`
	Image       string    `json:"image"` // as asked for; empty means the backend's default
	Created     time.Time `json:"created"`
	Size        int64     `json:"size_bytes"`
	// LastUsed is when a sandbox last got it, within an hour; zero when not known.
	LastUsed time.Time `json:"last_used,omitzero"`
	// InUse reports whether a sandbox has it now.
	InUse bool `json:"in_use"`
}

// CacheRetry is how long a prepared cache that could not be filled is not tried again.
const CacheRetry = time.Hour

// Layers keeps layers where the sandboxes of a backend can mount them. Its methods may be
// called concurrently, and by several processes. A sandbox that was created with a layer
// keeps it from being removed.
type Layers interface {
	// Toolchain names the program of a language in spec.Image and what was installed
	// beside it, and changes when one of them does. Where there is no image, installed are
	// the places, patterns as in filepath.Match, absolute or below the directory above the
	// program's. It is "" when it is known that there is no such program. It is asked
	// before the first Get or Read.
	Toolchain(ctx context.Context, spec Spec, program string, installed []string) (string, error)
	// Get returns the layer of about.Key as the Source of a [Layer]. When it is not there,
	// fill makes it in an empty directory of this machine, one caller at a time among all
	// processes: others wait, no longer than their ctx lives. Until fill has succeeded
	// nothing of it is seen, and when it fails nothing is left and its error is
	// returned as it is. The next caller tries again, unless about is of a cache and ctx
	// had not ended: then Get returns "" for CacheRetry, to this process at least.
	Get(ctx context.Context, about LayerInfo, fill func(ctx context.Context, dir string) error) (source string, err error)
	// Read writes a layer's files to w as a tar stream, with its symbolic links.
	Read(ctx context.Context, source string, w io.Writer) error
	// List lists the layers that are whole, sorted by key.
	List(ctx context.Context) ([]LayerInfo, error)
	// Remove removes a layer. It fails with ErrLocked while a sandbox uses it, and with
	// ErrLayerNotFound when there is none of that key.
	Remove(ctx context.Context, key string) error
}
