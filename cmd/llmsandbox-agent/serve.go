//go:build linux

package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/llmsandbox/llmsandbox/internal/guest"
)

// serve serves streams on stdin and stdout, on a unix socket, or both, until a
// client shuts the agent down or nobody has been connected for the grace time.
func serve(f flags) error {
	// First of all: code of the same uid could look into this process.
	if err := guest.Harden(); err != nil {
		return err
	}
	opts := guest.Options{
		CodeUID: uint32(unix.Geteuid()),
		CodeGID: uint32(unix.Getegid()),
		Workdir: f.workdir,
	}
	if f.uid >= 0 {
		opts.CodeUID = uint32(f.uid)
	}
	if f.gid >= 0 {
		opts.CodeGID = uint32(f.gid)
	}
	opts.OOMScoreAdj = codeOOMScoreAdj
	if err := addFiles(&opts); err != nil {
		return err
	}
	var token []byte
	listener := -1
	var err error
	if f.listen != "" {
		if token, err = readToken(f.tokenFD); err != nil {
			return err
		}
		if listener, err = listen(f.listen); err != nil {
			return err
		}
	}
	var stdio *duplex
	if f.stdio {
		if stdio, err = takeStdio(); err != nil {
			return err
		}
	}
	agent, err := guest.New(opts)
	if err != nil {
		return err
	}
	defer agent.Shutdown()
	users := newUsers(f)
	failed := make(chan error, 1)
	if listener >= 0 {
		go func() {
			failed <- agent.ServeListener(listener, func(conn *os.File) (func(), error) {
				if err := admit(conn, token); err != nil {
					return nil, err
				}
				return users.enter(), nil
			})
		}()
	}
	if stdio != nil {
		leave := users.enter()
		go func() {
			defer leave()
			// The client sees why its own stream ended.
			_ = agent.ServeConn(stdio)
		}()
	}
	select {
	case <-agent.Quit():
		return nil
	case <-users.idle:
		return nil
	case err := <-failed:
		return err
	}
}

// codeOOMScoreAdj makes the kernel kill code rather than the agent when memory is
// short.
const codeOOMScoreAdj = 500

// users counts the connections, and tells when there has been none for the grace
// time.
type users struct {
	grace time.Duration
	never bool
	idle  chan struct{}

	mu    sync.Mutex
	count int
	timer *time.Timer
}

// newUsers: without --grace an agent that listens waits for clients for ever, and
// one that only has stdin and stdout ends with them.
func newUsers(f flags) *users {
	u := &users{grace: time.Duration(max(f.grace, 0)) * time.Second, idle: make(chan struct{})}
	u.never = f.grace < 0 && f.listen != ""
	if !u.never && !f.stdio {
		u.enter()()
	}
	return u
}

// enter counts a connection until leave is called.
func (u *users) enter() (leave func()) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.count++
	if u.timer != nil {
		u.timer.Stop()
	}
	return func() {
		u.mu.Lock()
		defer u.mu.Unlock()
		if u.count--; u.count > 0 || u.never {
			return
		}
		u.timer = time.AfterFunc(u.grace, func() {
			u.mu.Lock()
			defer u.mu.Unlock()
			select {
			case <-u.idle:
			default:
				if u.count == 0 {
					close(u.idle)
				}
			}
		})
	}
}

// listen makes the agent's socket, which only the agent's own user can connect to.
func listen(path string) (int, error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return -1, fmt.Errorf("make the socket's folder: %w", err)
	}
	if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
		return -1, fmt.Errorf("remove the socket of an agent before: %w", err)
	}
	fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
	if err != nil {
		return -1, fmt.Errorf("make a socket: %w", err)
	}
	old := unix.Umask(0o177)
	err = unix.Bind(fd, &unix.SockaddrUnix{Name: path})
	unix.Umask(old)
	if err == nil {
		err = unix.Listen(fd, 64)
	}
	if err != nil {
		return -1, fmt.Errorf("listen on %s: %w", path, err)
	}
	return fd, nil
}
