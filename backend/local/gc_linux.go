package local

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/llmsandbox/llmsandbox/backend"
	"github.com/llmsandbox/llmsandbox/internal/agenthost"
	"github.com/llmsandbox/llmsandbox/internal/cgroup"
	"github.com/llmsandbox/llmsandbox/internal/layerstore"
)

// deadPrefix marks a directory that a collector has taken; no sandbox id starts with it.
const deadPrefix = ".dead-"

// GC removes the directories and cgroups of sandboxes whose owner has died. Their
// processes, mounts and disks died with the owner. It also removes what was prepared
// for a toolchain and not used for a month, or never finished.
func (b *Backend) GC(ctx context.Context) ([]backend.Leftover, error) {
	d, err := b.dirs()
	if err != nil {
		return nil, err
	}
	dead, found, err := claimDead(d)
	if err != nil {
		return nil, err
	}
	for _, name := range dead {
		if ctx.Err() != nil {
			return found, context.Cause(ctx)
		}
		l := backend.Leftover{Kind: "sandbox", Name: strings.TrimPrefix(name, deadPrefix)}
		l.Removed, l.Reason = outcome(removeDead(d, l.Name, filepath.Join(d.sandboxes, name)))
		found = append(found, l)
	}
	freeUsers(d)
	// A cgroup carries the name of its sandbox; one without a directory has no owner.
	for _, name := range staleGroups(d) {
		l := backend.Leftover{Kind: "cgroup", Name: name}
		l.Removed, l.Reason = outcome(cgroup.Detect().Remove(ctx, name))
		found = append(found, l)
	}
	found = append(found, b.collectVolumes(ctx)...)
	prepared, err := collectPrepared(ctx, d, unusedPrepared)
	return append(found, prepared...), errors.Join(err, cgroup.Detect().Tidy())
}

// removeDead removes a sandbox whose directory was renamed. What it has no namespaces for may live still.
func removeDead(d dirs, id, dir string) error {
	if _, err := os.Lstat(filepath.Join(dir, placesLink)); err == nil {
		if err := cgroup.Detect().Thaw(groupName(d, id)); err != nil {
			return err
		}
		if err := endTagged(tagOf(filepath.Join(d.sandboxes, id))); err != nil {
			return err
		}
	}
	if err := removePlaces(dir); err != nil {
		return err
	}
	return os.RemoveAll(dir)
}

func outcome(err error) (removed bool, text string) {
	if err != nil {
		return false, err.Error()
	}
	return true, ""
}

// claimDead renames the directories without an owner, so that their ids are free at once, and
// returns their new names with those that an interrupted collection left.
func claimDead(d dirs) (dead []string, failed []backend.Leftover, err error) {
	guard, err := lockFile(filepath.Join(d.state, "gc.lock"), unix.LOCK_EX)
	if err != nil {
		return nil, nil, err
	}
	defer guard.Close()
	entries, err := os.ReadDir(d.sandboxes)
	if err != nil {
		return nil, nil, fmt.Errorf("collect leftovers: %w", err)
	}
	for _, e := range entries {
		name := e.Name()
		if strings.HasPrefix(name, deadPrefix) {
			dead = append(dead, name)
			continue
		}
		path := filepath.Join(d.sandboxes, name)
		live, err := owned(path)
		if live {
			continue
		}
		if err == nil {
			err = os.Rename(path, filepath.Join(d.sandboxes, deadPrefix+name))
		}
		if os.IsNotExist(err) {
			continue // its owner was faster
		}
		if err != nil {
			failed = append(failed, backend.Leftover{Kind: "sandbox", Name: name, Reason: err.Error()})
			continue
		}
		dead = append(dead, deadPrefix+name)
	}
	return dead, failed, nil
}

// sweepEvery is how long after one sweep the next may come: a command that is called again and
// again should not look for leftovers each time.
const sweepEvery = 10 * time.Minute

// sweepDue reports whether no process has swept for that long, and notes that this one does.
func (d dirs) sweepDue() bool {
	stamp := filepath.Join(d.state, "swept")
	if info, err := os.Lstat(stamp); err == nil && time.Since(info.ModTime()).Abs() < sweepEvery {
		return false
	}
	// Where it cannot be noted, each process sweeps.
	_ = os.WriteFile(stamp, nil, 0o600)
	now := time.Now()
	_ = os.Chtimes(stamp, now, now)
	return true
}

// sweepOnce collects in the background, once per process, what earlier owners left, if that is
// due.
func (b *Backend) sweepOnce(log *slog.Logger) {
	b.sweep.Do(func() {
		b.sweeping.Add(1)
		go func() {
			defer b.sweeping.Done()
			if d, err := b.dirs(); err == nil && !d.sweepDue() {
				return
			}
			found, err := b.GC(context.Background())
			agenthost.LogSweep(log, found, err)
		}()
	})
}

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
