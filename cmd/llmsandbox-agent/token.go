//go:build linux

package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// maxToken bounds a token, in bytes.
const maxToken = 256

// tokenWait is how long a client may take to send its token.
const tokenWait = 10 * time.Second

var errRefused = errors.New("connection refused")

// readToken reads the secret that clients must send first, where code shares the
// agent's uid and could therefore connect. It comes over a descriptor, because
// arguments and environment can be seen by others.
func readToken(fd int) ([]byte, error) {
	if fd < 0 {
		return nil, nil
	}
	f := os.NewFile(uintptr(fd), "token")
	defer f.Close()
	token, err := io.ReadAll(io.LimitReader(f, maxToken+1))
	if err != nil {
		return nil, fmt.Errorf("read the token: %w", err)
	}
	if len(token) == 0 || len(token) > maxToken {
		return nil, fmt.Errorf("the token must have 1 to %d bytes", maxToken)
	}
	return token, nil
}

// admit lets in who runs as the agent's own user or as root, and knows the token.
func admit(conn *os.File, token []byte) error {
	var cred *unix.Ucred
	raw, err := conn.SyscallConn()
	if err != nil {
		return err
	}
	if cerr := raw.Control(func(fd uintptr) {
		cred, err = unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED)
	}); cerr != nil {
		return cerr
	}
	if err != nil {
		return err
	}
	if cred.Uid != 0 && cred.Uid != uint32(unix.Geteuid()) {
		return errRefused
	}
	if len(token) == 0 {
		return nil
	}
	if err := conn.SetReadDeadline(time.Now().Add(tokenWait)); err != nil {
		return err
	}
	given := make([]byte, len(token))
	if _, err := io.ReadFull(conn, given); err != nil {
		return err
	}
	different := byte(0)
	for i := range token { // in constant time
		different |= token[i] ^ given[i]
	}
	if different != 0 {
		return errRefused
	}
	return conn.SetReadDeadline(time.Time{})
}
