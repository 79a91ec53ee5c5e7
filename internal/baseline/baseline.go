// Package baseline knows what a sandbox was like before code ran in it, and makes it so
// again: no processes, the directories that code can write to, mounts, and what processes
// share that outlives them.
package baseline

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/llmsandbox/llmsandbox/backend"
	"github.com/llmsandbox/llmsandbox/internal/agentclient"
)

// A Sandbox is what a baseline is taken of.
type Sandbox struct {
	Client *agentclient.Client
	// Exec executes a program of the read-only root as code would be, and returns its output, and
	// with which status it ended if it failed.
	Exec func(ctx context.Context, timeout time.Duration, argv ...string) (output, failed string, err error)
}

// A Baseline is what a sandbox was like.
type Baseline struct {
	surroundings string
	tree         tree
}

// Take looks at a sandbox in which no code has run. Its error wraps backend.ErrUnsupported
// where it cannot be known what code will change: files in what code can write to.
func Take(ctx context.Context, s Sandbox) (*Baseline, error) {
	var b Baseline
	var err error
	if b.surroundings, err = s.surroundings(ctx); err != nil {
		return nil, err
	}
	if b.tree, err = newTree(ctx, s.Client, mounts(b.surroundings)); err != nil {
		return nil, err
	}
	return &b, processesGone(ctx, s.Client)
}

// Restore kills everything that runs in the sandbox, makes it as it was, and looks whether it
// is so. After an error that is not known.
func (b *Baseline) Restore(ctx context.Context, s Sandbox) error {
	if err := killAll(ctx, s.Client); err != nil {
		return err
	}
	if err := processesGone(ctx, s.Client); err != nil {
		return err
	}
	if err := b.tree.restore(ctx, s.Client); err != nil {
		return err
	}
	if err := b.restoreSticky(ctx, s); err != nil {
		return err
	}
	now, err := s.surroundings(ctx)
	if err != nil {
		return err
	}
	if now != b.surroundings {
		return errors.New("mounts or shared memory, queues or semaphores are not as they were")
	}
	if err := processesGone(ctx, s.Client); err != nil {
		return err
	}
	return b.tree.verify(ctx, s.Client)
}

// execTime bounds the programs that a baseline needs.
const execTime = 10 * time.Second

// surroundings are the mounts, and what processes share that outlives them.
func (s Sandbox) surroundings(ctx context.Context) (string, error) {
	text, failed, err := s.Exec(ctx, execTime, "cat", "/proc/self/mounts", "/proc/sysvipc/shm", "/proc/sysvipc/msg", "/proc/sysvipc/sem")
	if err != nil {
		return "", fmt.Errorf("look at its mounts: %w", err)
	}
	if failed != "" {
		return "", fmt.Errorf("look at its mounts: cat ended with status %s: %w", failed, backend.ErrUnsupported)
	}
	return text, nil
}

// restoreSticky gives directories the bit of their mode that the agent does not set. It comes
// when there is no program left of the code's that could take chmod's place.
func (b *Baseline) restoreSticky(ctx context.Context, s Sandbox) error {
	for _, root := range b.tree.roots {
		was := b.tree.folders[root].Mode
		now, err := s.Client.Stat(ctx, root)
		if err != nil {
			return err
		}
		if now.Mode == was {
			continue
		}
		_, failed, err := s.Exec(ctx, execTime, "chmod", fmt.Sprintf("%04o", was), root)
		if err != nil {
			return err
		}
		if failed != "" {
			return fmt.Errorf("give its directory %s its mode: chmod ended with status %s", root, failed)
		}
	}
	return nil
}
