//go:build !linux && !darwin

// Package unixsocket listens on Unix sockets that only the caller's user and root can use.
package unixsocket

import (
	"errors"
	"net"
)

// Listen fails: this system does not tell which user connects to a socket.
func Listen(string) (net.Listener, error) {
	return nil, errors.New("on this system a server cannot tell which user connects to a Unix socket: use an address such as 127.0.0.1:8321")
}
