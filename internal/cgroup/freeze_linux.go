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

	"github.com/llmsandbox/llmsandbox/backend"
)

// freezeTime bounds the wait for processes to stop: one in a long system call may take a while.
const freezeTime = 5 * time.Second

// Freeze stops all processes of the group until Thaw, and returns when they have. After an
// error they go on. It fails with ErrUnsupported where the sandbox has no group that can.
func (g *Group) Freeze(ctx context.Context) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.gone {
		return fmt.Errorf("freeze the control group of %s: it is removed: %w", g.name, os.ErrClosed)
	}
	ctx, cancel := context.WithTimeout(ctx, freezeTime)
	defer cancel()
	var err error
	if d := g.dirs[""]; d != "" {
		if !strings.Contains(filepath.Base(d), g.name) { // others, or this process itself, may be in it
			return fmt.Errorf("freeze the sandbox: %w: it has no control group of its own", backend.ErrUnsupported)
		}
		err = freezeV2(ctx, d)
	} else {
		err = g.freezeV1(ctx)
	}
	if err != nil {
		return fmt.Errorf("freeze the control group of %s: %w", g.name, errors.Join(err, g.thaw()))
	}
	return nil
}

// Thaw lets the processes of a group go on; those that were not stopped do anyway.
func (g *Group) Thaw() error {
	g.mu.Lock()
	defer g.mu.Unlock()
	if err := g.thaw(); err != nil {
		return fmt.Errorf("thaw the control group of %s: %w", g.name, err)
	}
	return nil
}

// thaw needs g.mu.
func (g *Group) thaw() error {
	if d := g.dirs[""]; d != "" {
		// Before Linux 5.2 there is no such file, and nothing is frozen.
		if err := write(d, "cgroup.freeze", "0"); !missing(err) {
			return err
		}
		return nil
	}
	return g.s.Thaw(g.name)
}

// freezeV2 waits for the kernel's report that all have stopped.
func freezeV2(ctx context.Context, dir string) error {
	err := write(dir, "cgroup.freeze", "1")
	if errors.Is(err, unix.ENOENT) {
		return fmt.Errorf("%w: the kernel cannot freeze a group: it needs Linux 5.2", backend.ErrUnsupported)
	}
	if err != nil {
		return err
	}
	events, err := os.Open(filepath.Join(dir, "cgroup.events"))
	if err != nil {
		return err
	}
	defer events.Close()
	for {
		var buf [512]byte
		n, err := unix.Pread(int(events.Fd()), buf[:], 0)
		if err != nil {
			return err
		}
		if frozen, err := field(buf[:n], "frozen"); err != nil || frozen == 1 {
			return err
		}
		if ctx.Err() != nil {
			return fmt.Errorf("some processes have not stopped: %w", context.Cause(ctx))
		}
		deadline, _ := ctx.Deadline()
		ms := max(1, time.Until(deadline).Milliseconds())
		if _, err := unix.Poll([]unix.PollFd{{Fd: int32(events.Fd()), Events: unix.POLLPRI}}, int(ms)); err != nil && err != unix.EINTR {
			return err
		}
	}
}

// freezeV1 makes a group of the freezer only now, since most sandboxes never need it, and moves all
// processes there. What they fork is born there, too.
func (g *Group) freezeV1(ctx context.Context) error {
	from := ""
	for _, d := range g.dirs {
		from = d
	}
	if from == "" {
		return fmt.Errorf("%w: the sandbox has no control group", backend.ErrUnsupported)
	}
	if !g.s.Usable("freezer") {
		c := g.s.controllers["freezer"]
		return fmt.Errorf("%w: %s: %s", backend.ErrUnsupported, c.why, c.fix)
	}
	dir := g.s.freezerV1(g.name)
	if err := mkdir(dir, func() error { return mkdirOurs(filepath.Dir(dir)) }); err != nil && !errors.Is(err, unix.EEXIST) {
		return err
	}
	for moved := true; moved; {
		inside, err := procs(dir)
		if err != nil {
			return err
		}
		all, err := procs(from)
		if err != nil {
			return err
		}
		moved = false
		for _, p := range all {
			if slices.Contains(inside, p) {
				continue
			}
			moved = true
			if err := write(dir, "cgroup.procs", strconv.Itoa(p)); err != nil && !errors.Is(err, unix.ESRCH) {
				return err
			}
		}
		if ctx.Err() != nil {
			return fmt.Errorf("processes fork faster than they can be stopped: %w", context.Cause(ctx))
		}
	}
	if err := write(dir, "freezer.state", "FROZEN"); err != nil {
		return err
	}
	// The kernel looks at the processes when it is asked, and has no event for it.
	for pause := 50 * time.Microsecond; ; pause = min(2*pause, 10*time.Millisecond) {
		state, err := os.ReadFile(filepath.Join(dir, "freezer.state"))
		if err != nil || strings.TrimSpace(string(state)) == "FROZEN" {
			return err
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("some processes have not stopped: %w", context.Cause(ctx))
		case <-time.After(pause):
		}
	}
}

// freezerV1 is the directory of a group of version 1 that was frozen once.
func (s *Support) freezerV1(name string) string {
	return filepath.Join(s.controllers["freezer"].base, name)
}

// Thaw lets the processes of the group of that name go on, whoever has stopped them, where those that were killed end only then: under
// version 1.
func (s *Support) Thaw(name string) error {
	if err := validName(name); err != nil {
		return err
	}
	if s.Version == V2 || !s.Usable("freezer") {
		return nil
	}
	if err := write(s.freezerV1(name), "freezer.state", "THAWED"); !missing(err) {
		return err
	}
	return nil
}
