package local

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/llmsandbox/llmsandbox/backend"
	"github.com/llmsandbox/llmsandbox/internal/agenthost"
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
		l.Removed, l.Reason = outcome(os.RemoveAll(filepath.Join(d.sandboxes, name)))
		found = append(found, l)
	}
	// A cgroup carries the name of its sandbox; one without a directory has no owner.
	for _, name := range staleGroups(d) {
		l := backend.Leftover{Kind: "cgroup", Name: name}
		l.Removed, l.Reason = outcome(removeGroup(ctx, name))
		found = append(found, l)
	}
	prepared, err := collectPrepared(ctx, d, unusedPrepared)
	return append(found, prepared...), errors.Join(err, tidyGroups())
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

// sweepOnce collects in the background, once per process, what earlier owners left.
func (b *Backend) sweepOnce(log *slog.Logger) {
	b.sweep.Do(func() {
		b.sweeping.Add(1)
		go func() {
			defer b.sweeping.Done()
			found, err := b.GC(context.Background())
			agenthost.LogSweep(log, found, err)
		}()
	})
}
