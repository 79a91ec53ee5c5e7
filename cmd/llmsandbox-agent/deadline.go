//go:build linux

package main

import (
	"fmt"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// deadline returns what is closed when the wall clock reaches that time; the zero
// time is never reached. The kernel's timer is one of the wall clock, so that a
// machine that slept, or whose clock was set, is not late.
func deadline(at time.Time) (<-chan struct{}, error) {
	if at.IsZero() {
		return nil, nil
	}
	fd, err := unix.TimerfdCreate(unix.CLOCK_REALTIME, unix.TFD_CLOEXEC|unix.TFD_NONBLOCK)
	if err != nil {
		return nil, fmt.Errorf("make a timer for the deadline: %w", err)
	}
	spec := unix.ItimerSpec{Value: unix.NsecToTimespec(at.UnixNano())}
	if err := unix.TimerfdSettime(fd, unix.TFD_TIMER_ABSTIME, &spec, nil); err != nil {
		unix.Close(fd)
		return nil, fmt.Errorf("set the timer for the deadline: %w", err)
	}
	timer := os.NewFile(uintptr(fd), "deadline")
	reached := make(chan struct{})
	go func() {
		// A timer that could not be read must not let the sandbox live for ever.
		_, _ = timer.Read(make([]byte, 8))
		close(reached)
	}()
	return reached, nil
}
