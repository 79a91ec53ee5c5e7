//go:build linux

package main

import (
	"os"
	"os/signal"

	"golang.org/x/sys/unix"
)

// ignoreSignals keeps code of the same uid from ending the agent by a signal that
// can be caught. They are caught rather than ignored, because programs would
// inherit that. SIGCHLD is the agent's own business, and so are faults: see
// [guest.DropFaultSignals].
func ignoreSignals() {
	drop := make(chan os.Signal, 1)
	var all []os.Signal
	for n := unix.Signal(1); n <= 64; n++ {
		switch n {
		case unix.SIGCHLD, unix.SIGURG, unix.SIGPROF, unix.SIGKILL, unix.SIGSTOP,
			unix.SIGSEGV, unix.SIGBUS, unix.SIGFPE, unix.SIGILL, unix.SIGPIPE:
		default:
			all = append(all, n)
		}
	}
	signal.Notify(drop, all...)
	go func() {
		for range drop {
		}
	}()
}
