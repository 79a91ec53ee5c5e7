//go:build linux

// Command llmsandbox-agent is the guest agent: the program inside a sandbox that
// starts processes and moves files for the one who owns the sandbox. It is started
// by a backend, not by people.
//
//	llmsandbox-agent serve [FLAG VALUE]...          see the list of flags in flags.go
//	llmsandbox-agent --listen-fd N --setup-fd M     of the local backend
//	llmsandbox-agent connect [--environment] ADDRESS
//	                                                joins stdin and stdout to ADDRESS
//	llmsandbox-agent usage                          what the container uses, as far as it is shown
//	llmsandbox-agent install DIR [FLAG]...          copies itself to DIR/agent
//	llmsandbox-agent unpack DIR                     unpacks a tar stream on stdin into DIR
//	llmsandbox-agent launch                         of the local backend: starts agents below another sandbox
//	llmsandbox-agent version
//
// An ADDRESS is a path, or @NAME for a unix socket that is in no file system: it
// needs no directory that can be written to, and code cannot remove it.
package main

import (
	"errors"
	"fmt"
	"os"
	"os/signal"

	"golang.org/x/sys/unix"

	"github.com/llmsandbox/llmsandbox/internal/agentproto"
	"github.com/llmsandbox/llmsandbox/internal/guest"
)

func main() {
	err := run(os.Args[1:])
	var end endError
	switch {
	case errors.As(err, &end):
		os.Exit(int(end))
	case err != nil:
		fail(err)
	}
}

// An endError is why an agent has ended by itself, which its exit code tells.
type endError agentproto.End

func (e endError) Error() string { return agentproto.End(e).Reason(0) }

func fail(err error) {
	fmt.Fprintf(os.Stderr, "llmsandbox-agent: %v\n", err)
	os.Exit(1)
}

func run(args []string) error {
	if len(args) == 0 {
		return errors.New("no mode given: this program is started by llmsandbox, not by hand")
	}
	switch args[0] {
	case "version":
		fmt.Println("llmsandbox-agent protocol", agentproto.Version)
		return nil
	case "connect":
		if err := guest.Harden(); err != nil {
			return err
		}
		environment := len(args) == 3 && args[1] == "--environment"
		if len(args) != 2 && !environment {
			return errors.New("usage: llmsandbox-agent connect [--environment] ADDRESS")
		}
		return connect(args[len(args)-1], environment)
	case "usage":
		if err := guest.Harden(); err != nil {
			return err
		}
		return writeUsage(os.Stdout, cgroupDir)
	case "launch":
		return launch()
	case "install":
		return install(args[1:])
	case "unpack":
		return unpack(args[1:])
	case "serve":
		args = args[1:]
	}
	f, err := parseFlags(args)
	if err != nil {
		return err
	}
	if err := occupyStandardFDs(); err != nil {
		return err
	}
	ignoreSignals()
	if err := guest.DropFaultSignals(); err != nil {
		return err
	}
	if f.setupFD >= 0 {
		// Not hardened yet: the host must still be able to write its uid map.
		return serveLocal(f)
	}
	return serve(f)
}

// occupyStandardFDs makes sure that no pipe or socket gets a standard descriptor's
// number.
func occupyStandardFDs() error {
	for {
		fd, err := unix.Open("/dev/null", unix.O_RDWR|unix.O_CLOEXEC, 0)
		if err != nil {
			return fmt.Errorf("open /dev/null, which a container must have: %w", err)
		}
		if fd > 2 {
			return unix.Close(fd)
		}
	}
}

// ignoreSignals keeps code of the same uid from ending the agent by a signal that
// can be ignored. Programs get the default of each back. SIGCHLD is the agent's own business, and so
// are faults: see [guest.DropFaultSignals].
func ignoreSignals() {
	for n := unix.Signal(1); n <= 64; n++ {
		switch n {
		case unix.SIGCHLD, unix.SIGURG, unix.SIGPROF, unix.SIGKILL, unix.SIGSTOP,
			unix.SIGSEGV, unix.SIGBUS, unix.SIGFPE, unix.SIGILL, unix.SIGPIPE:
		default:
			signal.Ignore(n) // to catch them costs a hand-over between threads for each
		}
	}
}
