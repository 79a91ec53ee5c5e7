//go:build linux

package engine

import (
	"errors"
	"io"
	"net"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

// A proxy is a way to an engine that a test can break.
type proxy struct {
	Host string // of the engine, this way

	target string
	mu     sync.Mutex
	shut   bool
	open   map[net.Conn]bool
	all    sync.WaitGroup
}

// newProxy returns a way to the engine at a host. up, when not nil, sees what is sent there.
func newProxy(t *testing.T, host string, up func(io.Writer) io.Writer) *proxy {
	t.Helper()
	path := filepath.Join(t.TempDir(), "e.sock")
	l, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	p := &proxy{Host: "unix://" + path, target: strings.TrimPrefix(host, "unix://"), open: map[net.Conn]bool{}}
	if up == nil {
		up = func(w io.Writer) io.Writer { return w }
	}
	p.all.Go(func() {
		for {
			from, err := l.Accept()
			if err != nil {
				return
			}
			to, err := p.dial(from)
			if err != nil {
				_ = from.Close()
				continue
			}
			p.all.Go(func() { p.copy(from, to, from) })
			p.all.Go(func() { p.copy(up(to), from, to) })
		}
	})
	t.Cleanup(func() { _ = l.Close(); p.cut(true); p.all.Wait() })
	return p
}

func (p *proxy) dial(from net.Conn) (net.Conn, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.shut {
		return nil, errors.New("shut")
	}
	to, err := net.Dial("unix", p.target)
	if err == nil {
		p.open[from], p.open[to] = true, true
	}
	return to, err
}

// copy passes one direction on. Half of a connection may end before the other.
func (p *proxy) copy(to io.Writer, from, conn net.Conn) {
	_, err := io.Copy(to, from)
	half, ok := conn.(*net.UnixConn)
	if err == nil && ok && half.CloseWrite() == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, c := range []net.Conn{from, conn} {
		_ = c.Close()
		delete(p.open, c)
	}
}

// cut breaks all connections, and, where shut, refuses new ones from now on.
func (p *proxy) cut(shut bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.shut = shut
	for c := range p.open {
		_ = c.Close()
	}
	clear(p.open)
}
