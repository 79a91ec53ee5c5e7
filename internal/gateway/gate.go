// Package gateway is the host's end of a sandbox's network: a listener on the
// sandbox's loopback whose connections an egress proxy serves, the files and variables by
// which programs find it, and a log of what they tried to reach.
package gateway

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"path"
	"slices"
	"sync"

	"github.com/llmsandbox/llmsandbox/backend"
	"github.com/llmsandbox/llmsandbox/internal/agentclient"
	"github.com/llmsandbox/llmsandbox/internal/agentproto"
	"github.com/llmsandbox/llmsandbox/internal/ctxend"
	"github.com/llmsandbox/llmsandbox/internal/egress"
	"github.com/llmsandbox/llmsandbox/internal/proxyenv"
	"github.com/llmsandbox/llmsandbox/internal/trust"
)

// A Gateway takes the connections that programs make to their loopback and has a proxy serve
// them. It is safe for concurrent use.
type Gateway struct {
	agent Agent
	proxy *egress.Proxy
	log   *Log
	port  uint16
	ended <-chan struct{} // the sandbox's end

	ctx    context.Context
	cancel context.CancelFunc
	wake   chan struct{}
	taken  chan struct{} // closed when another gateway serves the sandbox
	wg     sync.WaitGroup
}

// An Agent connects to the sandbox's agent, where it is not connected yet.
type Agent func(context.Context) (*agentclient.Client, error)

// Open writes the plan's files and listens inside the sandbox, which has ended when ended is
// closed. ctx is that of opening alone. When it fails the plan is discarded.
func Open(ctx context.Context, agent Agent, ended <-chan struct{}, guest backend.Guest, plan *Plan) (*Gateway, error) {
	g := &Gateway{agent: agent, proxy: plan.proxy, log: plan.log, port: cmp.Or(guest.ProxyPort, plan.port), ended: ended, wake: make(chan struct{}, 1), taken: make(chan struct{})}
	plan.taken = true
	g.ctx, g.cancel = context.WithCancel(context.Background())
	client, err := agent(ctx)
	if err == nil {
		err = write(ctx, client, DirIn(guest), plan)
	}
	var listener *agentclient.Listener
	if err == nil {
		listener, err = g.listenInside(ctx, client)
	}
	if err != nil {
		g.cancel()
		plan.proxy.Close()
		return nil, fmt.Errorf("give the sandbox its network: %w", err)
	}
	g.wg.Go(func() { g.keep(listener) })
	return g, nil
}

func (g *Gateway) listenInside(ctx context.Context, client *agentclient.Client) (*agentclient.Listener, error) {
	l, err := client.Listen(ctx, g.port)
	if busy(err) {
		return nil, fmt.Errorf("%w: a program has taken the proxy's port: end it", err)
	}
	return l, err
}

// write writes a plan's files into dir.
func write(ctx context.Context, client *agentclient.Client, dir string, plan *Plan) error {
	files := slices.Clone(plan.files)
	for i, f := range files {
		files[i].Path = path.Join(dir, path.Base(f.Path))
	}
	trusted, err := trustFiles(ctx, client, plan.proxy.CA(), dir)
	if err != nil {
		return err
	}
	for _, f := range append(files, trusted...) {
		if err := client.Mkdir(ctx, path.Dir(f.Path), 0o755, true); err != nil {
			return fmt.Errorf("make the folder of %s: %w", f.Path, err)
		}
		if err := client.Remove(ctx, f.Path, agentclient.RemoveOptions{Missing: true, Recursive: true}); err != nil {
			return fmt.Errorf("remove what is at %s: %w", f.Path, err)
		}
		if _, err := client.WriteFile(ctx, f.Path, bytes.NewReader(f.Data), agentclient.WriteOptions{Mode: 0o444, Create: true, Exclusive: true}); err != nil {
			return fmt.Errorf("write %s: %w", f.Path, err)
		}
	}
	return nil
}

func busy(err error) bool {
	var known *agentproto.Error
	return errors.As(err, &known) && known.Code == agentproto.CodeBusy
}

// keep serves one listener after the other, since the agent outlives its streams.
func (g *Gateway) keep(l *agentclient.Listener) {
	slots := make(chan struct{}, maxConnections)
	for l != nil {
		err := g.serve(l, slots)
		l.Close()
		if busy(err) {
			close(g.taken)
			return
		}
		l = g.again()
	}
}

// Taken reports whether another gateway has taken the sandbox over. Connections that this one has
// go on.
func (g *Gateway) Taken() bool {
	return ctxend.Closed(g.taken)
}

// serve takes connections until the listener has ended.
func (g *Gateway) serve(l *agentclient.Listener, slots chan struct{}) error {
	for {
		id, err := l.Next(g.ctx)
		if err != nil {
			return err
		}
		select {
		case slots <- struct{}{}:
		case <-g.ctx.Done():
			return nil
		}
		g.wg.Go(func() {
			defer func() { <-slots }()
			conn, err := l.Accept(g.ctx, id)
			if err != nil {
				return // closed inside meanwhile, or the stream is lost
			}
			g.proxy.Serve(g.ctx, conn.Conn("sandbox"))
		})
	}
}

// again listens once more after the stream was lost. While that cannot be, it waits for
// the next call that reaches the agent.
func (g *Gateway) again() *agentclient.Listener {
	for g.ctx.Err() == nil {
		if client, err := g.agent(g.ctx); err == nil {
			if l, err := g.listenInside(g.ctx, client); err == nil {
				return l
			}
		}
		select {
		case <-g.wake:
		case <-g.ended:
			return nil
		case <-g.ctx.Done():
		}
	}
	return nil
}

// retry lets a gateway whose agent could not be reached try again.
func (g *Gateway) retry() {
	select {
	case g.wake <- struct{}{}:
	default:
	}
}

// SetPolicy changes what may be reached: connections that are no longer allowed are cut.
func (g *Gateway) SetPolicy(p *egress.Policy) { g.proxy.SetPolicy(p) }

// Close ends all connections and waits until they have ended.
func (g *Gateway) Close() {
	g.cancel()
	g.proxy.Close()
	g.wg.Wait()
}

// trustFiles make programs trust the proxy's authority beside the certificates that they
// trust anyway, which are those of the inside.
func trustFiles(ctx context.Context, client *agentclient.Client, ca []byte, dir string) ([]proxyenv.File, error) {
	if ca == nil {
		return nil, nil
	}
	system, _, err := trust.System(func(at string) ([]byte, error) {
		b, err := client.ReadAll(ctx, at, trust.MaxBundle)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", at, err)
		}
		return b, nil
	})
	if err != nil {
		return nil, fmt.Errorf("read the certificates that the sandbox trusts: %w", err)
	}
	return trust.Files(dir, ca, system), nil
}
