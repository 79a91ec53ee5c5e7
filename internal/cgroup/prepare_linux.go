package cgroup

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// prepare makes our version 2 directory and hands the controllers down to it.
func (s *Support) prepare() error {
	s.preparing.Lock()
	defer s.preparing.Unlock()
	err := s.enable(s.top)
	if errors.Is(err, unix.EBUSY) {
		// A group with processes of its own cannot hand controllers down, unless
		// it is the kernel's root: in a container or a service it is not.
		if err = s.leaveTop(); err == nil {
			err = s.enable(s.top)
		}
	}
	if err != nil {
		return err
	}
	if err := mkdirOurs(s.base); err != nil {
		return err
	}
	return s.enable(s.base)
}

// enable hands the usable controllers down to the children of dir.
func (s *Support) enable(dir string) error {
	data, err := os.ReadFile(filepath.Join(dir, "cgroup.subtree_control"))
	if err != nil {
		return err
	}
	have := strings.Fields(string(data))
	return s.handDown(dir, slices.DeleteFunc(s.usable(), func(c string) bool { return slices.Contains(have, c) }))
}

// usable are the controllers that can be used here.
func (s *Support) usable() []string {
	return slices.DeleteFunc([]string{"memory", "cpu", "pids"}, func(c string) bool { return !s.Usable(c) })
}

// handDown hands controllers down to the children of dir, whether it was done before
// or not.
func (s *Support) handDown(dir string, controllers []string) error {
	if len(controllers) == 0 {
		return nil
	}
	return write(dir, "cgroup.subtree_control", "+"+strings.Join(controllers, " +"))
}

// leaveTop moves this process to a leaf, only when no other process is in the group.
func (s *Support) leaveTop() error {
	busy, err := s.shared()
	if err != nil {
		return err
	}
	if busy {
		return fmt.Errorf("other processes live in the group %s, so it cannot hand controllers down: move them into a group below it: %w", s.top, unix.EBUSY)
	}
	leaf := filepath.Join(s.top, folder+"-owner")
	if err := mkdirOurs(leaf); err != nil {
		return err
	}
	return write(leaf, "cgroup.procs", "0")
}

// shared reports whether processes but this one live in the top.
func (s *Support) shared() (bool, error) {
	data, err := os.ReadFile(filepath.Join(s.top, "cgroup.procs"))
	if err != nil {
		return false, err
	}
	p := strings.Fields(string(data))
	return len(p) > 1 || len(p) == 1 && p[0] != strconv.Itoa(os.Getpid()), nil
}
