package cgroup

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// destroyTime bounds the wait for killed processes when the context does not.
const destroyTime = 5 * time.Second

// each directory once.
func (g *Group) each(f func(dir string) error) []error {
	var errs []error
	var seen []string
	for _, d := range g.dirs {
		if !slices.Contains(seen, d) {
			seen = append(seen, d)
			errs = append(errs, f(d))
		}
	}
	return errs
}

func kill(dir string) error {
	err := write(dir, "cgroup.kill", "1")
	if !errors.Is(err, unix.ENOENT) {
		return err
	}
	// Version 1, or Linux before 5.14: first stop the forking, where this is the group that
	// can, then kill until a pass finds no new process.
	if err := write(dir, "pids.max", "0"); err != nil && !errors.Is(err, unix.ENOENT) {
		return err
	}
	killed := map[int]bool{}
	for range 1000 {
		pids, err := procs(dir)
		if err != nil {
			return err
		}
		fresh := false
		for _, p := range pids {
			if !killed[p] {
				killed[p], fresh = true, true
				if err := unix.Kill(p, unix.SIGKILL); err != nil && err != unix.ESRCH {
					return fmt.Errorf("kill pid %d: %w", p, err)
				}
			}
		}
		if !fresh {
			return nil
		}
	}
	return fmt.Errorf("processes in %s fork faster than they can be killed", filepath.Base(dir))
}

// procs lists the processes of a group; a removed group has none.
func procs(dir string) ([]int, error) {
	data, err := os.ReadFile(filepath.Join(dir, "cgroup.procs"))
	if missing(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var out []int
	for f := range strings.FieldsSeq(string(data)) {
		p, err := strconv.Atoi(f)
		if err != nil {
			return nil, err
		}
		if p > 0 { // 0: lives in a pid namespace that is not seen from here
			out = append(out, p)
		}
	}
	return out, nil
}

// Destroy ends what is left in the group and removes it. It is idempotent.
func (g *Group) Destroy(ctx context.Context) error {
	if err := g.remove(ctx); err != nil {
		return fmt.Errorf("control group of %s: %w", g.name, err)
	}
	return nil
}

func (g *Group) remove(ctx context.Context) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.gone = true
	if g.oom != nil {
		g.oom.Close()
		g.oom = nil
	}
	ctx, cancel := context.WithTimeout(ctx, destroyTime)
	defer cancel()
	if g.s.scopes {
		// systemd removes the directory. Were it faster than systemd, a removal of
		// ours would leave the unit behind, running for ever without a group.
		return errors.Join(g.each(func(d string) error { return empty(ctx, d) })...)
	}
	errs := []error{g.s.Thaw(g.name)}
	errs = append(errs, g.each(func(d string) error { return removeDir(ctx, d) })...)
	if g.s.Version != V2 && g.s.Usable("freezer") {
		errs = append(errs, removeDir(ctx, g.s.freezerV1(g.name))) // by whom it was made is not known
	}
	return errors.Join(errs...)
}

// empty ends the processes of a group and waits until they have.
func empty(ctx context.Context, dir string) error {
	for {
		pids, err := procs(dir)
		if err != nil || len(pids) == 0 {
			return err
		}
		if err := kill(dir); err != nil && !errors.Is(err, unix.ENODEV) {
			return err
		}
		if err := awaitEnd(ctx, dir); err != nil {
			return err
		}
		if ctx.Err() != nil {
			return fmt.Errorf("still has processes: %w", ctx.Err())
		}
	}
}

// removeDir removes a group, first as if no process were left, which is the usual case.
func removeDir(ctx context.Context, dir string) error {
	pause := 50 * time.Microsecond
	for {
		err := unix.Rmdir(dir)
		if err == nil || err == unix.ENOENT {
			return nil
		}
		if err != unix.EBUSY {
			return fmt.Errorf("remove: %w", err)
		}
		if err := kill(dir); err != nil && !missing(err) {
			return err
		}
		if err := awaitEnd(ctx, dir); err != nil {
			return err
		}
		// The last process has ended, but the kernel lets go of the group a
		// moment later and on version 1 has no event for it.
		select {
		case <-ctx.Done():
			return fmt.Errorf("still has processes: %w", ctx.Err())
		case <-time.After(pause):
		}
		pause = min(2*pause, 10*time.Millisecond)
	}
}

// awaitEnd waits until the processes now in the group have ended.
func awaitEnd(ctx context.Context, dir string) error {
	pids, err := procs(dir)
	if err != nil {
		return err
	}
	for _, p := range pids {
		fd, err := unix.PidfdOpen(p, 0)
		if err != nil {
			continue // ended, or reported by the next rmdir
		}
		deadline, _ := ctx.Deadline()
		ms := max(0, time.Until(deadline).Milliseconds())
		_, err = unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, int(ms))
		unix.Close(fd)
		if err != nil && err != unix.EINTR {
			return fmt.Errorf("wait for pid %d: %w", p, err)
		}
	}
	return nil
}

// Stale names the groups there are whose names begin with prefix, of living
// owners too: only the caller knows which owners live.
func (s *Support) Stale(prefix string) []string {
	var out []string
	for _, b := range s.bases() {
		entries, _ := os.ReadDir(b) // no directory: no groups
		for _, e := range entries {
			if e.IsDir() && strings.HasPrefix(e.Name(), prefix) && validName(e.Name()) == nil && !slices.Contains(out, e.Name()) {
				out = append(out, e.Name())
			}
		}
	}
	slices.Sort(out)
	return out
}

// Remove ends and removes the group of that name, no matter which process made it.
func (s *Support) Remove(ctx context.Context, name string) error {
	if err := validName(name); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, destroyTime)
	defer cancel()
	errs := []error{s.Thaw(name)}
	for _, b := range s.bases() {
		if err := removeDir(ctx, filepath.Join(b, name)); err != nil {
			errs = append(errs, fmt.Errorf("control group of %s: %w", name, err))
		}
	}
	return errors.Join(errs...)
}

// abandonedAge is how old an empty group must be to have no owner. A group is empty for
// the moment between its making and its first process only.
const abandonedAge = 10 * time.Minute

// Tidy removes empty groups that no process will use, also those of owners whose state
// directory is not known any more, and the directories above the groups when none is left in
// them. The latter is not part of Destroy, because making them anew and handing the
// controllers down again costs the next sandbox more than its own group does.
func (s *Support) Tidy() error {
	var errs []error
	for _, b := range s.bases() {
		removeAbandoned(b)
		switch err := unix.Rmdir(b); err {
		case nil, unix.ENOENT, unix.EBUSY, unix.ENOTEMPTY: // gone, or still of use
		case unix.EACCES, unix.EPERM, unix.EROFS: // another user's
		default:
			errs = append(errs, fmt.Errorf("remove the empty control group %s: %w", b, err))
		}
	}
	return errors.Join(errs...)
}

// removeAbandoned removes the old groups below base that are empty. The kernel keeps
// those with a process in them; what cannot be removed is looked at the next time.
func removeAbandoned(base string) {
	entries, _ := os.ReadDir(base) // no directory: no groups
	for _, e := range entries {
		info, err := e.Info()
		if err != nil || !e.IsDir() || validName(e.Name()) != nil || time.Since(info.ModTime()) < abandonedAge {
			continue
		}
		_ = unix.Rmdir(filepath.Join(base, e.Name()))
	}
}

// bases are the directories above the groups. Scopes have none: systemd removes a
// scope by itself when its last process ends.
func (s *Support) bases() []string {
	if s.scopes {
		return nil
	}
	if s.Version == V2 {
		return []string{s.base}
	}
	var out []string
	for _, c := range s.controllers {
		if c.base != "" && !slices.Contains(out, c.base) {
			out = append(out, c.base)
		}
	}
	return out
}
