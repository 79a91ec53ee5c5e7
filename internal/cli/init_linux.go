package cli

import (
	"errors"
	"fmt"
	"os"
	"os/signal"
	"slices"
	"syscall"

	"golang.org/x/sys/unix"
	"golang.org/x/term"
)

// longLived are the commands that go on for long enough to fill a container with the processes that nobody waits for.
var longLived = []string{"serve", "mcp"}

// isInit reports whether this process is the first one of a container, to which all processes come whose parent has ended, and is one that stays.
func isInit() bool {
	return os.Getpid() == 1 && len(os.Args) > 1 && slices.Contains(longLived, os.Args[1])
}

// runInit runs this command in a child, passes on to it the signals that come, and waits for every process that ends meanwhile. The command itself
// cannot do that: it would take the end of a child away from the part of it that waits for that one. It returns the child's exit code.
func runInit() (int, error) {
	signals := make(chan os.Signal, 16)
	signal.Notify(signals, unix.SIGTERM, unix.SIGINT, unix.SIGHUP, unix.SIGQUIT, unix.SIGUSR1, unix.SIGUSR2)
	child, err := os.StartProcess("/proc/self/exe", os.Args, &os.ProcAttr{
		Files: []*os.File{os.Stdin, os.Stdout, os.Stderr},
		// What a terminal sends to its foreground, it sends to the child alone.
		Sys: &syscall.SysProcAttr{Setpgid: true, Foreground: term.IsTerminal(0)},
	})
	if err != nil {
		return 0, fmt.Errorf("start the command as a child of process 1: %w", err)
	}
	go func() {
		for s := range signals {
			_ = child.Signal(s) // one that has ended needs none
		}
	}()
	for {
		var status unix.WaitStatus
		pid, err := unix.Wait4(-1, &status, 0, nil)
		switch {
		case errors.Is(err, unix.EINTR):
		case err != nil:
			return 0, fmt.Errorf("wait for the command: %w", err)
		case pid == child.Pid && status.Signaled():
			return 128 + int(status.Signal()), nil
		case pid == child.Pid && status.Exited():
			return status.ExitStatus(), nil
		}
	}
}
