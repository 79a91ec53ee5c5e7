//go:build linux

package main

import (
	"fmt"
	"io"
	"os"
	"runtime"
	"strings"

	"golang.org/x/sys/unix"
)

// A duplex is a stream of two descriptors, stdin and stdout.
type duplex struct{ in, out *os.File }

func (d *duplex) Read(p []byte) (int, error)  { return d.in.Read(p) }
func (d *duplex) Write(p []byte) (int, error) { return d.out.Write(p) }
func (d *duplex) Close() error {
	err := d.in.Close()
	if cerr := d.out.Close(); err == nil {
		err = cerr
	}
	return err
}

// takeStdio moves stdin and stdout to descriptors of the agent's own, and leaves
// /dev/null in their places.
func takeStdio() (*duplex, error) {
	in, err := moveFD(0, "stdin")
	if err != nil {
		return nil, err
	}
	out, err := moveFD(1, "stdout")
	if err != nil {
		return nil, err
	}
	return &duplex{in: in, out: out}, nil
}

func moveFD(fd int, name string) (*os.File, error) {
	moved, err := unix.FcntlInt(uintptr(fd), unix.F_DUPFD_CLOEXEC, 3)
	if err != nil {
		return nil, fmt.Errorf("take %s: %w", name, err)
	}
	null, err := unix.Open("/dev/null", unix.O_RDWR|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("open /dev/null: %w", err)
	}
	defer unix.Close(null)
	if err := unix.Dup3(null, fd, 0); err != nil {
		return nil, fmt.Errorf("replace %s: %w", name, err)
	}
	// So that closing it wakes who reads it. What cannot do that blocks, and works.
	_ = unix.SetNonblock(moved, true)
	return os.NewFile(uintptr(moved), name), nil
}

// connect joins stdin and stdout to the unix socket of an agent, for places where
// running a command is the only way in. It ends when the agent's side ends. Where that is
// wanted it tells of its environment first, once there is an agent.
func connect(address string, environment bool) error {
	fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("make a socket: %w", err)
	}
	if err := unix.Connect(fd, &unix.SockaddrUnix{Name: address}); err != nil {
		return fmt.Errorf("connect to the agent at %s: %w", address, err)
	}
	if err := unix.SetNonblock(fd, true); err != nil {
		return fmt.Errorf("prepare the socket: %w", err)
	}
	if environment {
		if err := writeEnvironment(os.Stdout); err != nil {
			return fmt.Errorf("tell of the environment: %w", err)
		}
	}
	conn := os.NewFile(uintptr(fd), "agent")
	go func() {
		// Whatever ends the input, the agent sees the end of the stream.
		_, _ = io.Copy(conn, os.Stdin)
		_ = unix.Shutdown(fd, unix.SHUT_WR)
	}()
	if _, err := io.Copy(os.Stdout, conn); err != nil {
		return fmt.Errorf("pass on what the agent sends: %w", err)
	}
	return nil
}

// writeEnvironment reports what this process was given by its container, for places where
// no API reports it: strings that each end in a zero byte, of which the last is empty.
// They are the architecture, the current directory, and the variables but those of the
// agent's own.
func writeEnvironment(w io.Writer) error {
	dir, err := unix.Getwd()
	if err != nil {
		dir = "" // not known, which is no reason to keep anybody out
	}
	var all strings.Builder
	put := func(s string) { all.WriteString(s); all.WriteByte(0) }
	put(runtime.GOARCH)
	put(dir)
	for _, kv := range os.Environ() {
		if kv != "" && !strings.HasPrefix(kv, "LLMSANDBOX_") {
			put(kv)
		}
	}
	put("")
	_, err = io.WriteString(w, all.String())
	return err
}
