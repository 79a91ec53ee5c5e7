package egress

import (
	"bufio"
	"io"
	"net"
	"net/http"
)

// countedBody counts what the sandbox sends.
type countedBody struct {
	io.ReadCloser
	a *attempt
}

func (c *countedBody) Read(p []byte) (int, error) {
	n, err := c.ReadCloser.Read(p)
	c.a.sent.Add(int64(n))
	return n, err
}

// counter counts what the sandbox receives.
type counter struct {
	http.ResponseWriter
	a *attempt
}

func (c *counter) Write(p []byte) (int, error) {
	n, err := c.ResponseWriter.Write(p)
	c.a.received.Add(int64(n))
	return n, err
}

// Unwrap is for http.ResponseController.
func (c *counter) Unwrap() http.ResponseWriter { return c.ResponseWriter }

// Hijack takes the connection, for an upgrade, and goes on counting.
func (c *counter) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	conn, rw, err := http.NewResponseController(c.ResponseWriter).Hijack()
	if err != nil {
		return nil, nil, err
	}
	counted := &countedConn{conn, c.a}
	return counted, bufio.NewReadWriter(rw.Reader, bufio.NewWriter(counted)), nil
}

type countedConn struct {
	net.Conn
	a *attempt
}

func (c *countedConn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	c.a.sent.Add(int64(n))
	return n, err
}

func (c *countedConn) Write(p []byte) (int, error) {
	n, err := c.Conn.Write(p)
	c.a.received.Add(int64(n))
	return n, err
}

// CloseWrite ends the sending half.
func (c *countedConn) CloseWrite() error { return closeWrite(c.Conn) }
