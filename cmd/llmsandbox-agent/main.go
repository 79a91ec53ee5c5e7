//go:build linux

// Command llmsandbox-agent is the guest agent: the program inside a sandbox that
// starts processes and moves files for the one who owns the sandbox. It is started
// by a backend, not by people.
//
//	llmsandbox-agent serve [--stdio] [--listen PATH [--token-fd N]] [--grace SECONDS]
//	                       [--uid N] [--gid N] [--workdir DIR]
//	llmsandbox-agent --listen-fd N --setup-fd M     of the local backend
//	llmsandbox-agent connect PATH                   joins stdin and stdout to PATH
//	llmsandbox-agent version
package main

import (
	"errors"
	"fmt"
	"os"
	"os/signal"
	"strconv"

	"golang.org/x/sys/unix"

	"github.com/llmsandbox/llmsandbox/internal/agentproto"
	"github.com/llmsandbox/llmsandbox/internal/guest"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fail(err)
	}
}

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
		if len(args) != 2 {
			return errors.New("usage: llmsandbox-agent connect PATH")
		}
		return connect(args[1])
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
	if f.setupFD >= 0 {
		// Not hardened yet: the host must still be able to write its uid map.
		return serveLocal(f)
	}
	return serve(f)
}

type flags struct {
	stdio             bool
	listen            string
	listenFD, setupFD int
	tokenFD           int
	grace             int // seconds; -1: not given
	uid, gid          int // -1: the agent's own
	workdir           string
}

func parseFlags(args []string) (flags, error) {
	f := flags{listenFD: -1, setupFD: -1, tokenFD: -1, grace: -1, uid: -1, gid: -1}
	numbers := map[string]*int{
		"--listen-fd": &f.listenFD, "--setup-fd": &f.setupFD, "--token-fd": &f.tokenFD,
		"--grace": &f.grace, "--uid": &f.uid, "--gid": &f.gid,
	}
	texts := map[string]*string{"--listen": &f.listen, "--workdir": &f.workdir}
	for len(args) > 0 {
		name := args[0]
		args = args[1:]
		if name == "--stdio" {
			f.stdio = true
			continue
		}
		number, text := numbers[name], texts[name]
		if number == nil && text == nil {
			return f, fmt.Errorf("unknown flag %q", name)
		}
		if len(args) == 0 {
			return f, fmt.Errorf("flag %s needs a value", name)
		}
		value := args[0]
		args = args[1:]
		if text != nil {
			*text = value
			continue
		}
		n, err := strconv.ParseUint(value, 10, 31)
		if err != nil {
			return f, fmt.Errorf("flag %s needs a number, not %q", name, value)
		}
		*number = int(n)
	}
	switch {
	case (f.setupFD >= 0) != (f.listenFD >= 0):
		return f, errors.New("--setup-fd and --listen-fd go together")
	case f.setupFD < 0 && !f.stdio && f.listen == "":
		return f, errors.New("nothing to serve: give --stdio or --listen")
	case f.tokenFD >= 0 && f.listen == "":
		return f, errors.New("--token-fd goes with --listen")
	}
	return f, nil
}

// ignoreSignals keeps code of the same uid from ending the agent by a signal that
// can be caught. They are caught rather than ignored, because programs would
// inherit that. SIGCHLD is the agent's own business.
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

// occupyStandardFDs makes sure that no pipe or socket gets a standard descriptor's
// number.
func occupyStandardFDs() error {
	for {
		fd, err := unix.Open("/dev/null", unix.O_RDWR|unix.O_CLOEXEC, 0)
		if err != nil {
			return fmt.Errorf("open /dev/null: %w", err)
		}
		if fd > 2 {
			return unix.Close(fd)
		}
	}
}
