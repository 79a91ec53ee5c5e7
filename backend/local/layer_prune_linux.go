package local

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/llmsandbox/llmsandbox/backend"
)

// unusedPrepared is after how long without use a collection removes what was prepared
// for a toolchain: by then the toolchain is likely another one.
const unusedPrepared = 30 * 24 * time.Hour

// abandoned is the age of a half-made root or disk whose maker must be dead: it takes a
// moment.
const abandoned = time.Hour

// PrunePrepared removes prepared layers, roots and disks that no sandbox uses, and that none
// has used for so long. They are made again when they are needed.
func (b *Backend) PrunePrepared(ctx context.Context, unused time.Duration) ([]backend.Leftover, error) {
	d, err := b.dirs()
	if err != nil {
		return nil, err
	}
	return collectPrepared(ctx, d, unused)
}

// collectPrepared also removes what makers that died have left.
func collectPrepared(ctx context.Context, d dirs, unused time.Duration) ([]backend.Leftover, error) {
	var found []backend.Leftover
	note := func(kind, path string, removed bool, err error) {
		if removed || err != nil {
			l := backend.Leftover{Kind: kind, Name: filepath.Base(path)}
			l.Removed, l.Error = outcome(err)
			found = append(found, l)
		}
	}
	for _, l := range []struct{ kind, dir string }{{"layer", d.layers()}, {"libraries", d.libraries()}} {
		err := collectLayers(ctx, l.dir, unused, func(path string, removed bool, err error) { note(l.kind, path, removed, err) })
		if err != nil {
			return found, err
		}
	}
	for _, kept := range []struct {
		kind, prefix string
		unused       time.Duration
	}{
		{"root", "hostroot-", unused}, {"root", ".hostroot-", abandoned}, {"root", deadPrefix + "hostroot-", 0},
		{"disk", diskPrefix, unused}, {"disk", halfDiskPrefix, abandoned}, {"disk", deadPrefix + diskPrefix, 0},
	} {
		// The folder's name is no pattern's business, so it is listed, not matched.
		for _, path := range withPrefix(d.cache, kept.prefix) {
			removed, err := removeUnused(path, kept.unused)
			note(kept.kind, path, removed, err)
		}
	}
	return found, nil
}

// collectLayers removes from one folder of layers what note is then told of.
func collectLayers(ctx context.Context, dir string, unused time.Duration, note func(path string, removed bool, err error)) error {
	entries, err := os.ReadDir(dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	for _, e := range entries {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		path := filepath.Join(dir, e.Name())
		maker, half := strings.CutSuffix(path, ".new")
		if !half {
			maker, half = strings.CutSuffix(path, ".lock")
		}
		switch {
		case half:
			removed, err := collectMaker(ctx, maker)
			note(maker, removed, err)
		case strings.HasPrefix(e.Name(), deadPrefix):
			note(path, true, os.RemoveAll(path))
		default: // a layer, or the note that it failed
			removed, err := removeUnused(path, unused)
			note(path, removed, err)
		}
	}
	return nil
}

func withPrefix(dir, prefix string) []string {
	var paths []string
	entries, _ := os.ReadDir(dir) // it was just made sure of
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), prefix) {
			paths = append(paths, filepath.Join(dir, e.Name()))
		}
	}
	return paths
}

// collectMaker removes what the maker of the layer at path has left, if it is dead.
func collectMaker(ctx context.Context, path string) (removed bool, err error) {
	lock, err := lockNamed(ctx, path+".lock", unix.LOCK_EX|unix.LOCK_NB)
	if errors.Is(err, unix.EWOULDBLOCK) {
		return false, nil // it lives
	}
	if err != nil {
		return false, err
	}
	defer func() { err = errors.Join(err, removeFile(lock.Name()), lock.Close()) }()
	if _, err := os.Lstat(path + ".new"); errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	return true, os.RemoveAll(path + ".new")
}

// removeUnused removes a prepared folder or file that was not used for so long and that no
// sandbox holds.
func removeUnused(path string, unused time.Duration) (removed bool, err error) {
	info, err := os.Lstat(path)
	if err != nil || time.Since(info.ModTime()) < unused {
		return false, nil // a folder that just went away is not unused either
	}
	f, err := os.Open(path)
	if err != nil {
		return false, err
	}
	defer f.Close()
	if err := flock(f, unix.LOCK_EX|unix.LOCK_NB); errors.Is(err, unix.EWOULDBLOCK) {
		return false, nil
	} else if err != nil {
		return false, err
	}
	if !strings.HasPrefix(filepath.Base(path), deadPrefix) {
		// Nobody finds a half-removed one.
		gone := filepath.Join(filepath.Dir(path), deadPrefix+filepath.Base(path))
		if err := os.Rename(path, gone); err != nil {
			return false, err
		}
		path = gone
	}
	return true, os.RemoveAll(path)
}
