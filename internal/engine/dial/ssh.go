package dial

import (
	"cmp"
	"context"
	"errors"
	"net"
	"os/exec"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/docker/cli/cli/connhelper/commandconn"
	"github.com/docker/cli/cli/connhelper/ssh"
	"github.com/moby/moby/client"
)

// SSH says how an ssh:// host is reached: by the ssh program, with the user's own
// configuration and keys, running a command on the other side that joins its input
// and output to the engine's socket.
type SSH struct {
	// Remote is that command; socket is the path in the host's URL, or empty.
	Remote func(socket string) []string
	// Flags are put before the host's name, e.g. "-i", "KEYFILE". They are not
	// quoted or checked.
	Flags []string
}

func (e Endpoint) ssh() (opener, string, error) {
	spec, err := ssh.ParseURL(e.Host)
	if err != nil {
		return nil, "", e.badHost(err.Error() + "; it has to look like ssh://USER@HOST:PORT")
	}
	socket := spec.Path
	if strings.Trim(socket, "/") == "" {
		socket = ""
	}
	// No terminal: the remote shell must not start as one that greets its user.
	flags := append([]string{"-o", "ConnectTimeout=30", "-T"}, e.SSH.Flags...)
	args, err := spec.Command(flags, e.SSH.Remote(socket)...)
	if err != nil {
		return nil, "", e.badHost(err.Error())
	}
	return func(ctx context.Context) (net.Conn, error) {
		conn, err := commandconn.New(ctx, "ssh", args...)
		if errors.Is(err, exec.ErrNotFound) {
			return nil, e.fail(SSHFailed, "there is no ssh program on this machine", "install an OpenSSH client")
		}
		if err != nil {
			return nil, e.fail(SSHFailed, "the ssh program cannot be started: "+err.Error(), "check that ssh works from here")
		}
		return &sshConn{Conn: conn, e: e}, nil
	}, "tcp://" + client.DummyHost, nil
}

// sshConn is the input and output of an ssh program.
type sshConn struct {
	net.Conn
	e     Endpoint
	heard atomic.Bool // whether the other side has ever sent anything

	// A reader at the end waits for ssh, which closes what is read. Only that reader
	// learns what ssh said. So one reads at a time, and how it ended is kept.
	reading sync.Mutex
	ended   error
}

func (c *sshConn) Read(p []byte) (int, error) {
	c.reading.Lock()
	defer c.reading.Unlock()
	if c.ended != nil {
		return 0, c.ended
	}
	n, err := c.Conn.Read(p)
	if n > 0 {
		c.heard.Store(true)
	}
	c.ended = c.explain(err)
	return n, c.ended
}

func (c *sshConn) Write(p []byte) (int, error) {
	n, err := c.Conn.Write(p)
	if err != nil && !c.heard.Load() {
		// ssh ended before there was a connection. Reading waits for its end and returns
		// what it said. Once there is a connection, what can be read is the engine's.
		if _, rerr := c.Read(make([]byte, 1)); rerr != nil {
			err = rerr
		}
	}
	return n, c.explain(err)
}

// explain makes an Error of what ssh said when it failed.
func (c *sshConn) explain(err error) error {
	if err == nil {
		return nil
	}
	_, said, found := strings.Cut(err.Error(), "stderr=")
	if !found {
		return err
	}
	said = strings.Join(strings.Fields(said), " ")
	said = cmp.Or(said, "no message")
	return c.e.fail(SSHFailed, "ssh failed: "+said,
		"check that the same ssh command works in a terminal without asking anything, and that "+c.e.Hints.Engine+"'s command is installed there")
}

// CloseWrite ends the sending direction.
func (c *sshConn) CloseWrite() error {
	return closeWrite(c.Conn)
}
