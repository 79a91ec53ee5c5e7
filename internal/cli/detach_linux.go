package cli

import (
	"syscall"

	"golang.org/x/sys/unix"
)

// detached starts a process in a session of its own, away from our terminal.
func detached() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setsid: true} }

func replaceDescriptor(from, to int) error { return unix.Dup3(from, to, 0) }
