//go:build linux

package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/llmsandbox/llmsandbox/internal/agentproto"
	"github.com/llmsandbox/llmsandbox/internal/guest"
)

// serve serves streams on stdin and stdout, on a unix socket, or both, until a
// client shuts the agent down, or it ends by itself.
func serve(f flags) error {
	// First of all: code of the same uid could look into this process.
	if err := guest.Harden(); err != nil {
		return err
	}
	opts, err := f.options()
	if err != nil {
		return err
	}
	var token []byte
	listener := -1
	if f.listen != "" {
		if token, err = readToken(f); err != nil {
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
	users := newUsers(f, func(d time.Duration, do func()) stopper { return agent.After(d, do) })
	failed := make(chan error, 1)
	if listener >= 0 {
		auth := newAuthenticator(token)
		go func() {
			failed <- agent.ServeListener(listener, func(conn *os.File) (func(), error) {
				if err := auth.authenticate(conn); err != nil {
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
			_ = agent.ServeConn(stdio, 0)
		}()
	}
	select {
	case <-agent.Quit():
		return nil
	case <-users.alone:
		return endError(agentproto.EndAlone)
	case why := <-agent.Over():
		return endError(why)
	case err := <-failed:
		return err
	}
}

// options are the agent's options by the flags.
func (f *flags) options() (guest.Options, error) {
	opts := guest.Options{
		CodeUID:     uint32(unix.Geteuid()),
		CodeGID:     uint32(unix.Getegid()),
		Users:       f.users,
		Workdir:     f.workdir,
		Rlimits:     f.rlimits,
		OOMScoreAdj: codeOOMScoreAdj,
		CountOOM:    true,
		Deadline:    f.deadline,
		Idle:        f.idle,
		Prepare:     f.plant,
	}
	if f.uid >= 0 {
		opts.CodeUID = uint32(f.uid)
	}
	if f.gid >= 0 {
		opts.CodeGID = uint32(f.gid)
	}
	var err error
	if opts.Seccomp, err = readFilter(f.seccomp); err != nil {
		return opts, err
	}
	return opts, addFiles(&opts, nil)
}

// plant makes the trees of links.
func (f *flags) plant() error {
	for _, p := range f.seeds {
		if err := p.Plant(); err != nil {
			return err
		}
	}
	return nil
}

// codeOOMScoreAdj makes the kernel kill code rather than the agent when memory is
// short.
const codeOOMScoreAdj = 500

// abstract reports whether an address is a name in the abstract namespace, which
// belongs to the network namespace and not to a file system.
func abstract(address string) bool { return strings.HasPrefix(address, "@") }

// listen makes the agent's socket. One with a path can only be connected to by the
// agent's own user.
func listen(address string) (int, error) {
	if !abstract(address) {
		if err := clearPath(address); err != nil {
			return -1, err
		}
	}
	fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
	if err != nil {
		return -1, fmt.Errorf("make a socket: %w", err)
	}
	old := unix.Umask(0o177)
	err = unix.Bind(fd, &unix.SockaddrUnix{Name: address})
	unix.Umask(old)
	if err == nil {
		err = unix.Listen(fd, 64)
	}
	if err != nil {
		unix.Close(fd)
		return -1, fmt.Errorf("listen on %s: %w", address, err)
	}
	return fd, nil
}

// clearPath makes room for a socket with a path.
func clearPath(path string) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return fmt.Errorf("make the socket's directory: %w", err)
	}
	if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("remove the socket of an agent before: %w", err)
	}
	return nil
}

// maxToken bounds a token, in bytes.
const maxToken = 256

// readToken reads the secret that clients must send first, where code shares the
// agent's uid and could therefore connect. It comes over a descriptor, or, where an
// engine can pass none, in an environment variable: that of a process that cannot be
// traced is closed to others of its uid, and nothing is passed on to programs.
func readToken(f flags) ([]byte, error) {
	switch {
	case f.tokenEnv != "":
		token, ok := os.LookupEnv(f.tokenEnv)
		if !ok {
			return nil, fmt.Errorf("read the token: the environment has no %s", f.tokenEnv)
		}
		if err := os.Unsetenv(f.tokenEnv); err != nil {
			return nil, fmt.Errorf("forget the token's variable: %w", err)
		}
		return checkToken([]byte(token))
	case f.tokenFD >= 0:
		file := os.NewFile(uintptr(f.tokenFD), "token")
		defer file.Close()
		token, err := io.ReadAll(io.LimitReader(file, maxToken+1))
		if err != nil {
			return nil, fmt.Errorf("read the token: %w", err)
		}
		return checkToken(token)
	}
	return nil, nil
}

func checkToken(token []byte) ([]byte, error) {
	if len(token) == 0 || len(token) > maxToken {
		return nil, fmt.Errorf("the token must have 1 to %d bytes", maxToken)
	}
	return token, nil
}

const (
	// tokenWait is how long a client may take to send its token.
	tokenWait = 10 * time.Second
	// maxPending bounds the connections that have not sent it yet, so that code
	// that connects and stays silent cannot use up the agent's descriptors.
	maxPending = 32
)

var errRefused = errors.New("connection refused")

// An authenticator accepts clients that run as the agent's own user or as root, and that
// know the token.
type authenticator struct {
	token   []byte
	pending chan struct{} // one element for each connection that is being checked
}

func newAuthenticator(token []byte) *authenticator {
	return &authenticator{token: token, pending: make(chan struct{}, maxPending)}
}

// authenticate reads the token, if there is one, and fails for a client that is not accepted.
func (a *authenticator) authenticate(conn *os.File) error {
	select {
	case a.pending <- struct{}{}:
		defer func() { <-a.pending }()
	default:
		return errRefused
	}
	uid, err := peerUID(conn)
	if err != nil {
		return err
	}
	if uid != 0 && uid != uint32(unix.Geteuid()) {
		return errRefused
	}
	if len(a.token) == 0 {
		return nil
	}
	if err := conn.SetReadDeadline(time.Now().Add(tokenWait)); err != nil {
		return err
	}
	given := make([]byte, len(a.token))
	if _, err := io.ReadFull(conn, given); err != nil {
		return err
	}
	different := byte(0)
	for i := range a.token { // in constant time
		different |= a.token[i] ^ given[i]
	}
	if different != 0 {
		return errRefused
	}
	return conn.SetReadDeadline(time.Time{})
}

// peerUID is the user at the other end of a unix socket.
func peerUID(conn *os.File) (uint32, error) {
	raw, err := conn.SyscallConn()
	if err != nil {
		return 0, err
	}
	var cred *unix.Ucred
	if cerr := raw.Control(func(fd uintptr) {
		cred, err = unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED)
	}); cerr != nil {
		return 0, cerr
	}
	if err != nil {
		return 0, err
	}
	return cred.Uid, nil
}

// maxFilter is the kernel's limit of 4096 instructions, in bytes.
const maxFilter = 4096 * 8

// readFilter reads the seccomp filter that every process gets; without a path there
// is none.
func readFilter(path string) ([]byte, error) {
	if path == "" {
		return nil, nil
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("open the seccomp filter: %w", err)
	}
	defer f.Close()
	raw, err := io.ReadAll(io.LimitReader(f, maxFilter+1))
	if err != nil {
		return nil, fmt.Errorf("read the seccomp filter: %w", err)
	}
	if len(raw) == 0 {
		// An empty one would be none at all.
		return nil, errors.New("the seccomp filter " + path + " is empty")
	}
	return raw, nil
}
