package local

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/llmsandbox/llmsandbox/backend"
	"github.com/llmsandbox/llmsandbox/internal/layerstore"
)

// unusedPrepared is after how long without use a collection removes what was prepared
// for a toolchain: by then the toolchain is likely another one.
const unusedPrepared = 30 * 24 * time.Hour

// abandoned is the age of a half-made root or disk whose maker must be dead: it takes a
// moment.
const abandoned = time.Hour

// PrunePrepared removes layers, roots and disks that no sandbox uses, and that none
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
	note := func(kind, path string, err error) {
		l := backend.Leftover{Kind: kind, Name: filepath.Base(path)}
		l.Removed, l.Reason = outcome(err)
		found = append(found, l)
	}
	if err := d.store().Collect(ctx, unused, func(path string, err error) { note("layer", path, err) }); err != nil {
		return found, err
	}
	for _, kept := range []struct {
		kind, prefix string
		unused       time.Duration
	}{
		{"root", "hostroot-", unused}, {"root", ".hostroot-", abandoned}, {"root", layerstore.DeadPrefix + "hostroot-", 0},
		{"disk", diskPrefix, unused}, {"disk", halfDiskPrefix, abandoned}, {"disk", layerstore.DeadPrefix + diskPrefix, 0},
	} {
		// The directory's name is no pattern's business, so it is listed, not matched.
		for _, path := range withPrefix(d.cache, kept.prefix) {
			if removed, err := layerstore.RemoveUnused(path, kept.unused); removed || err != nil {
				note(kept.kind, path, err)
			}
		}
	}
	return found, nil
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
