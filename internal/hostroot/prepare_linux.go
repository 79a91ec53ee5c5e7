package hostroot

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// layoutVersion changes when the same host gives another skeleton.
const layoutVersion = 2

// Prepare finds the host's toolchains and returns a root made of them. The skeleton is
// built once in cacheDir and used again until something it was made from changes. It
// may be called concurrently, by several processes.
func Prepare(cacheDir string, opts Options) (*Root, error) {
	if opts.Getenv == nil {
		opts.Getenv = os.Getenv
	}
	f := newFinder(opts.Getenv)
	f.findAll()
	root := f.root()
	sources := etcSources()
	root.Skeleton = filepath.Join(cacheDir, "hostroot-"+key(root, f.links, sources))
	if _, err := os.Lstat(root.Skeleton); err == nil {
		return root, nil
	} else if !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("look for the prepared root: %w", err)
	}
	if err := build(cacheDir, root, f.links, sources); err != nil {
		return nil, fmt.Errorf("prepare a root out of the host's toolchains: %w: check that %s is writable and has space", err, cacheDir)
	}
	return root, nil
}

// key names all that the skeleton depends on.
func key(root *Root, links map[string]string, sources []string) string {
	h := sha256.New()
	fmt.Fprintln(h, layoutVersion, root.Binds, links) // fmt prints maps in order
	for _, dir := range topLinks {
		target, _ := os.Readlink(dir)
		fmt.Fprintln(h, dir, target)
	}
	for _, path := range sources {
		if info, err := os.Stat(path); err == nil {
			fmt.Fprintln(h, path, info.Size(), info.ModTime().UnixNano())
		}
	}
	return hex.EncodeToString(h.Sum(nil)[:12])
}

// build makes the skeleton under another name and renames it, so that no process ever
// sees half of one.
func build(cacheDir string, root *Root, links map[string]string, sources []string) (err error) {
	if err := os.MkdirAll(cacheDir, 0o755); err != nil {
		return err
	}
	tmp, err := os.MkdirTemp(cacheDir, ".hostroot-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(tmp)) }()
	b := &builder{dir: tmp}
	b.skeleton(root.Binds, links)
	b.etc(sources)
	if b.err != nil {
		return b.err
	}
	if err := os.Chmod(tmp, 0o755); err != nil {
		return err
	}
	if err := os.Rename(tmp, root.Skeleton); err != nil && !errors.Is(err, fs.ErrExist) {
		return err // ErrExist: another process was faster
	}
	return nil
}
