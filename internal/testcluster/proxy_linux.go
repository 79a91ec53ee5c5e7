package testcluster

import (
	"errors"
	"io"
	"net"
	"net/url"
	"path/filepath"
	"sync"
	"testing"

	"k8s.io/client-go/tools/clientcmd"
)

// A Proxy is a connection to the API server that can be broken. Its methods may be called
// concurrently.
type Proxy struct {
	Kubeconfig string // path; as the cluster's own, through this proxy

	server string
	group  sync.WaitGroup // accept and the connections

	mu       sync.Mutex
	listener net.Listener // nil: shut
	address  string
	open     map[*connection]struct{}
}

// A connection is one of a client and its other half to the server.
type connection struct {
	client, server net.Conn
	frozen, closed chan struct{}
	freeze, close  sync.Once
}

// Proxy starts a proxy for the test, which ends with it.
func (c *Cluster) Proxy(t testing.TB) *Proxy {
	t.Helper()
	config, err := clientcmd.LoadFromFile(c.Kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	server, err := url.Parse(c.config.Host)
	if err != nil {
		t.Fatal(err)
	}
	p := &Proxy{
		Kubeconfig: filepath.Join(t.TempDir(), "kubeconfig"), server: server.Host,
		address: "127.0.0.1:0", open: map[*connection]struct{}{},
	}
	if err := p.listen(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := p.Shut(true); err != nil {
			t.Error(err)
		}
		p.group.Wait()
	})
	for _, cluster := range config.Clusters {
		cluster.Server = "https://" + p.address
	}
	if err := clientcmd.WriteToFile(*config, p.Kubeconfig); err != nil {
		t.Fatal(err)
	}
	return p
}

// Cut breaks all connections. New ones are let through.
func (p *Proxy) Cut() {
	for _, c := range p.connections() {
		c.end()
	}
}

// Freeze passes nothing on any more of the connections there are, which stay open. New
// ones are let through.
func (p *Proxy) Freeze() {
	for _, c := range p.connections() {
		c.freeze.Do(func() { close(c.frozen) })
	}
}

// Shut breaks all connections and refuses new ones, or lets them through again.
func (p *Proxy) Shut(shut bool) error {
	if !shut {
		return p.listen()
	}
	p.mu.Lock()
	l := p.listener
	p.listener = nil
	p.mu.Unlock()
	var err error
	if l != nil {
		err = l.Close()
	}
	p.Cut()
	return err
}

// listen opens the address, which stays the same from the first time on.
func (p *Proxy) listen() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.listener != nil {
		return nil
	}
	l, err := net.Listen("tcp", p.address)
	if err != nil {
		return err
	}
	p.listener, p.address = l, l.Addr().String()
	p.group.Go(func() { p.accept(l) })
	return nil
}

// accept ends with the listener.
func (p *Proxy) accept(l net.Listener) {
	for {
		client, err := l.Accept()
		if err != nil {
			return
		}
		p.group.Go(func() { p.serve(l, client) })
	}
}

// serve connects a client that came by a listener, until either end has enough.
func (p *Proxy) serve(l net.Listener, client net.Conn) {
	server, err := net.Dial("tcp", p.server)
	if err != nil {
		client.Close()
		return
	}
	c := &connection{client: client, server: server, frozen: make(chan struct{}), closed: make(chan struct{})}
	p.mu.Lock()
	shut := p.listener != l
	if !shut {
		p.open[c] = struct{}{}
	}
	p.mu.Unlock()
	if shut {
		c.end()
		return
	}
	var both sync.WaitGroup
	both.Go(func() { c.pass(server, client) })
	both.Go(func() { c.pass(client, server) })
	both.Wait()
	p.mu.Lock()
	delete(p.open, c)
	p.mu.Unlock()
}

func (p *Proxy) connections() []*connection {
	p.mu.Lock()
	defer p.mu.Unlock()
	list := make([]*connection, 0, len(p.open))
	for c := range p.open {
		list = append(list, c)
	}
	return list
}

// end breaks the connection at once; what was not passed on is lost.
func (c *connection) end() {
	c.close.Do(func() {
		close(c.closed)
		// An error would say that it is broken already.
		_ = errors.Join(c.client.Close(), c.server.Close())
	})
}

// pass forwards one direction. A frozen connection is held until it is broken.
func (c *connection) pass(to io.Writer, from io.Reader) {
	defer c.end()
	buffer := make([]byte, 32<<10)
	for {
		n, err := from.Read(buffer)
		select {
		case <-c.frozen:
			<-c.closed
			return
		default:
		}
		if n > 0 {
			if _, err := to.Write(buffer[:n]); err != nil {
				return
			}
		}
		if err != nil {
			return
		}
	}
}
