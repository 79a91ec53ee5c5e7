package client_test

import (
	"bytes"
	"errors"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"testing"

	"github.com/llmsandbox/llmsandbox"
	"github.com/llmsandbox/llmsandbox/client"
	"github.com/llmsandbox/llmsandbox/httpapi"
)

// TestUnix: a server on a Unix socket is used as any other, with terminals.
func TestUnix(t *testing.T) {
	dir, err := os.MkdirTemp("", "lsb") // its path must be short for sockets
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	path := filepath.Join(dir, "s")
	l, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	serveOn(t, l, httpapi.Config{})
	c, err := client.New("unix:"+path, key)
	if err != nil {
		t.Fatal(err)
	}
	if got := c.String(); got != "unix:"+path {
		t.Errorf("got the address %q, want that of the socket", got)
	}
	sb := open(t, c, llmsandbox.Options{})
	if res, err := sb.Run(testContext(t), "echo hello", nil); err != nil || res.Stdout != "hello\n" {
		t.Errorf("got %+v, %v, want hello", res, err)
	}
	var shown bytes.Buffer
	p, err := sb.Start(testContext(t), []string{"tty"}, &llmsandbox.ExecOptions{Terminal: &llmsandbox.WinSize{Rows: 24, Cols: 80}, Stdout: &shown})
	if err != nil {
		t.Fatal(err)
	}
	if res, err := p.Wait(testContext(t)); err != nil || !res.OK() || !bytes.Contains(shown.Bytes(), []byte("/dev/pts/")) {
		t.Errorf("got %q, %+v, %v, want a terminal", shown.Bytes(), res, err)
	}
}

// TestUnixTransport: a transport that connects by itself cannot be made to use a socket.
func TestUnixTransport(t *testing.T) {
	own := &http.Client{Transport: struct{ http.RoundTripper }{http.DefaultTransport}}
	if c, err := client.NewWith("unix:/s", key, &client.Options{HTTPClient: own}); !errors.Is(err, llmsandbox.ErrInvalid) {
		t.Errorf("got %v, %v, want ErrInvalid", c, err)
	}
}
