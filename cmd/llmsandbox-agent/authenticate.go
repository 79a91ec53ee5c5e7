//go:build linux

package main

import (
	"errors"
	"io"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

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
