package llmsandbox

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/llmsandbox/llmsandbox/backend"
	"github.com/llmsandbox/llmsandbox/internal/transfer"
)

// errNotCached is why a request fails that may not go to the network.
var errNotCached = errors.New("they are not in the cache, and the network is not to be used: install them once without --offline, or give a folder that has them")

// layer returns the request's layer, and makes it where there is none yet.
func (q *libraryRequest) layer(ctx context.Context) (key, source string, err error) {
	toolchain, err := q.layers.Toolchain(ctx, q.spec, q.language.Libraries.Program, q.language.Libraries.Installed)
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
	source, err = making.do(ctx, q.backend, key, func() (string, error) {
		return q.layers.Get(ctx, q.about(key), func(ctx context.Context, dir string) error {
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

// Bounds of a folder that libraries are installed from.
const (
	maxLocalBytes = 2 << 30
	maxLocalFiles = 10_000
)

var localLimits = transfer.Options{MaxBytes: maxLocalBytes, MaxFiles: maxLocalFiles}

// digestFolder names a folder's files by what they hold. Links below it are left out, as they
// are when it is copied.
func digestFolder(ctx context.Context, dir string) (string, error) {
	dir, err := filepath.EvalSymlinks(dir)
	if err != nil {
		return "", err
	}
	sum := sha256.New()
	var files, bytes int64
	err = filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err == nil {
			err = ctx.Err()
		}
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		name, err := filepath.Rel(dir, path)
		if err != nil {
			return err
		}
		f, err := os.Open(path)
		if err != nil {
			return err
		}
		defer f.Close()
		content := sha256.New()
		n, err := io.Copy(content, io.LimitReader(f, maxLocalBytes+1-bytes))
		if files, bytes = files+1, bytes+n; err == nil && (files > maxLocalFiles || bytes > maxLocalBytes) {
			err = fmt.Errorf("%s: %w: at most %d files and %d bytes", dir, ErrTooLarge, maxLocalFiles, int64(maxLocalBytes))
		}
		fmt.Fprintf(sum, "%q %x\n", filepath.ToSlash(name), content.Sum(nil))
		return err
	})
	if err == nil && files == 0 {
		err = fmt.Errorf("%s: %w: there is no file in it", dir, fs.ErrNotExist)
	}
	return hex.EncodeToString(sum.Sum(nil)), err
}
