// Package transfer copies files and directories between the host and a sandbox.
//
// What comes out of a sandbox is hostile: only regular files and directories are
// taken, below the destination, from one open directory to the next, so that neither a
// name nor a link that is there already leads elsewhere. File times are not kept,
// either way: what arrives is new there, and a build tool must not trust times
// that come with what it builds.
package transfer

import (
	"context"
	"fmt"
	"io"
	"io/fs"
	"strings"

	"github.com/llmsandbox/llmsandbox/internal/agentclient"
	"github.com/llmsandbox/llmsandbox/internal/agentproto"
)

// Guest is what copying needs of a sandbox; *[agentclient.Client] is one.
type Guest interface {
	Stat(ctx context.Context, path string) (agentproto.FileInfo, error)
	TarOut(ctx context.Context, path, prefix string, w io.Writer) (agentproto.TarResult, error)
	TarIn(ctx context.Context, dir string, r io.Reader, l agentclient.TarLimits) (agentproto.TarResult, error)
}

// ErrNoSafeContent: there was nothing that may be copied. It wraps fs.ErrNotExist.
var ErrNoSafeContent = fmt.Errorf("no safe content found: %w", fs.ErrNotExist)

// copyBuffer is the size of the pieces that content is copied in.
const copyBuffer = 256 << 10

// Defaults of the limits.
const (
	DefaultMaxBytes = 4 << 30
	DefaultMaxFiles = 1 << 20
)

// Options bound one copy. Zero means the default.
type Options struct {
	MaxBytes int64 // bytes of content
	MaxFiles int64 // files and directories
}

func (o Options) withDefaults() Options {
	if o.MaxBytes <= 0 {
		o.MaxBytes = DefaultMaxBytes
	}
	if o.MaxFiles <= 0 {
		o.MaxFiles = DefaultMaxFiles
	}
	return o
}

// A Result reports what a copy did, also when it failed halfway.
type Result struct {
	Files   int64    // regular files
	Bytes   int64    // bytes of their content
	Skipped []string // what was left out, each with its reason, at most 100
}

const maxSkipped = 100

func (r *Result) skip(what string) {
	if len(r.Skipped) < maxSkipped {
		r.Skipped = append(r.Skipped, what)
	}
}

// safeMode drops setuid, setgid, sticky and others' write permission.
func safeMode(mode int64) int64 { return mode&0o777&^0o022 | 0o600 }

// hasDotDot reports whether a path has a component "..".
func hasDotDot(path string) bool {
	for part := range strings.SplitSeq(path, "/") {
		if part == ".." {
			return true
		}
	}
	return false
}
