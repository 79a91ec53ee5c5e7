package dial

import (
	"context"
	"errors"
	"net"
	"os"
	"syscall"
)

// maxSocketPath is what fits into a socket address, with its final NUL.
const maxSocketPath = len(syscall.RawSockaddrUnix{}.Path) - 1

func (e Endpoint) unix(path string) (opener, string, error) {
	if len(path) > maxSocketPath {
		return nil, "", e.badHost("the socket's path is too long for a socket address; use a shorter path, or a link to it")
	}
	return func(ctx context.Context) (net.Conn, error) {
		d := net.Dialer{Timeout: connectTimeout}
		conn, err := d.DialContext(ctx, "unix", path)
		if err == nil {
			return conn, nil
		}
		explained := e.explain(ctx, err)
		var failed *Error
		if errors.As(explained, &failed) {
			e.aboutSocket(failed, path)
		}
		return nil, explained
	}, e.Host, nil
}

// aboutSocket adds to failed what the socket's file shows.
func (e Endpoint) aboutSocket(failed *Error, path string) {
	info, err := os.Stat(path)
	switch failed.Kind {
	case Permission:
		if err == nil {
			failed.Why = "this user may not open it: " + ownership(info)
		}
	case NoAnswer:
		if err == nil && info.Mode()&os.ModeSocket == 0 {
			failed.Kind, failed.Why = NoSocket, "it is a file, but no socket"
		} else if err == nil {
			failed.Why = "the socket is there, but nothing listens: the engine has ended or has not started yet"
		}
	}
}
