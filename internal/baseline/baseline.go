// Package baseline knows what a sandbox was like before code ran in it, and makes it so
// again: no processes, the directories that code can write to, mounts, and what processes
// share that outlives them.
package baseline

import (
	"context"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/llmsandbox/llmsandbox/backend"
	"github.com/llmsandbox/llmsandbox/internal/agentclient"
	"github.com/llmsandbox/llmsandbox/internal/agentproto"
)

// A Sandbox is what a baseline is taken of.
type Sandbox struct {
	Client *agentclient.Client
	// Volumes are the paths of mounts that are left as they are.
	Volumes []string
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
	if b.tree, err = newTree(ctx, s.Client, mounts(b.surroundings), s.Volumes); err != nil {
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
		was := b.tree.dirs[root].Mode
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

// A mount is what is to be seen at a path.
type mount struct {
	path, kind string
	writable   bool
}

// mounts reads lines of /proc/self/mounts; what is none is left out. Where several are at a
// path the last is seen. Paths with blanks keep their escapes and so lead nowhere, which is
// an error when they are looked at.
func mounts(lines string) []mount {
	seen := map[string]mount{}
	for line := range strings.Lines(lines) {
		fields := strings.Fields(line)
		if len(fields) < 4 || !path.IsAbs(fields[1]) {
			continue
		}
		options := strings.Split(fields[3], ",")
		seen[fields[1]] = mount{path: fields[1], kind: fields[2], writable: slices.Contains(options, "rw")}
	}
	all := make([]mount, 0, len(seen))
	for _, m := range seen {
		all = append(all, m)
	}
	slices.SortFunc(all, func(a, b mount) int { return strings.Compare(a.path, b.path) })
	return all
}

// keepsNothing tells whether what code writes there is gone with its processes.
func (m mount) keepsNothing() bool {
	return !m.writable || m.kind == "devpts" || m.kind == "proc" || strings.HasPrefix(m.path, "/proc/")
}

// around is the mount among all that another one's path is in; none for the root.
func around(all []mount, inner mount) mount {
	var outer mount
	for _, m := range all {
		if m.path != inner.path && strings.HasPrefix(inner.path, strings.TrimSuffix(m.path, "/")+"/") && len(m.path) > len(outer.path) {
			outer = m
		}
	}
	return outer
}

// killAll kills whatever the agent has started, with all that came of it.
func killAll(ctx context.Context, client *agentclient.Client) error {
	killed := map[uint64]bool{}
	for fresh := true; fresh; {
		list, err := client.Processes(ctx)
		if err != nil {
			return fmt.Errorf("list its processes: %w", err)
		}
		fresh = false
		for _, p := range list {
			if killed[p.ID] {
				continue
			}
			killed[p.ID], fresh = true, true
			if err := client.Kill(ctx, p.ID); err != nil && !collected(err) {
				return fmt.Errorf("kill its processes: %w", err)
			}
		}
	}
	return nil
}

// reapTime bounds how long what was killed may still be seen: the agent says that it is
// gone some moments before it has waited for the last of it.
const reapTime = 2 * time.Second

// processesGone waits until the agent is alone.
func processesGone(ctx context.Context, client *agentclient.Client) error {
	over := time.Now().Add(reapTime)
	for pause := time.Millisecond; ; pause *= 2 {
		n, err := client.Count(ctx)
		if err != nil {
			return fmt.Errorf("count its processes: %w", err)
		}
		if n == 0 {
			return nil
		}
		if time.Now().After(over) {
			return fmt.Errorf("%d processes are left beside the agent", n)
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// collected tells whether the agent knows no more of a process because all of it is over.
func collected(err error) bool {
	var ae *agentproto.Error
	return errors.As(err, &ae) && ae.Code == agentproto.CodeLost
}
