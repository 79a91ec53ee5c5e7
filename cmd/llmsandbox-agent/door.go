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
	// maxStrangers bounds the connections that have not sent it yet, so that code
	// that connects and stays silent cannot use up the agent's descriptors.
	maxStrangers = 32
)

var errRefused = errors.New("connection refused")

// A door lets in who runs as the agent's own user or as root, and knows the token.
type door struct {
	token     []byte
	strangers chan struct{} // one element for each connection that is being looked at
}

func newDoor(token []byte) *door {
	return &door{token: token, strangers: make(chan struct{}, maxStrangers)}
}

// admit reads the token, where there is one, and fails for who is not let in.
func (d *door) admit(conn *os.File) error {
	select {
	case d.strangers <- struct{}{}:
		defer func() { <-d.strangers }()
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
	if len(d.token) == 0 {
		return nil
	}
	if err := conn.SetReadDeadline(time.Now().Add(tokenWait)); err != nil {
		return err
	}
	given := make([]byte, len(d.token))
	if _, err := io.ReadFull(conn, given); err != nil {
		return err
	}
	different := byte(0)
	for i := range d.token { // in constant time
		different |= d.token[i] ^ given[i]
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
