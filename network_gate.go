package llmsandbox

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"path"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/llmsandbox/llmsandbox/backend"
	"github.com/llmsandbox/llmsandbox/internal/agentclient"
	"github.com/llmsandbox/llmsandbox/internal/agentproto"
	"github.com/llmsandbox/llmsandbox/internal/egress"
	"github.com/llmsandbox/llmsandbox/internal/proxyenv"
)

const (
	// gatePort is where programs find the proxy on the sandbox's loopback: no service's
	// port, and below those that the kernel hands out by itself.
	gatePort = 28471
	// gateDir holds the files that make programs use it, where the sandbox's private
	// folder for temporary files is /tmp; see gateDirIn.
	gateDir = "/tmp/.llmsandbox"
	// gateConnections bounds what is carried at once. The agent holds to the same, unless
	// it was taken over.
	gateConnections = 256
)

// gateDirIn is gateDir in the sandbox's own folder for temporary files.
func gateDirIn(guest backend.Guest) string { return path.Join(guest.TempDir, path.Base(gateDir)) }

// relocated returns an environment that names dir in place of gateDir: a sandbox gets its
// environment before it is known what it is like inside.
func relocated(env []string, dir string) []string {
	if dir == gateDir {
		return env
	}
	out := slices.Clone(env)
	for i, kv := range out {
		out[i] = strings.ReplaceAll(kv, gateDir, dir)
	}
	return out
}

// gateAddress is the proxy's address as programs see it.
func gateAddress() string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(gatePort)) }

// A gate is the way out of a sandbox: it takes the connections that programs make to
// their loopback and has the proxy serve them.
type gate struct {
	link  *link
	proxy *egress.Proxy
	ended <-chan struct{} // the sandbox's end

	ctx    context.Context
	cancel context.CancelFunc
	wake   chan struct{}
	wg     sync.WaitGroup
}

// openGate listens inside. The context is that of opening alone.
func openGate(ctx context.Context, l *link, ended <-chan struct{}, plan *netPlan, dir string) (*gate, error) {
	g := &gate{link: l, proxy: plan.proxy, ended: ended, wake: make(chan struct{}, 1)}
	g.ctx, g.cancel = context.WithCancel(context.Background())
	client, err := l.get(ctx)
	if err == nil {
		err = plant(ctx, client, plan.files)
	}
	if err == nil {
		err = plantTrust(ctx, client, plan.proxy.CA(), dir)
	}
	var listener *agentclient.Listener
	if err == nil {
		listener, err = listenInside(ctx, client)
	}
	if err != nil {
		g.cancel()
		return nil, fmt.Errorf("give the sandbox its network: %w", err)
	}
	g.wg.Go(func() { g.keep(listener) })
	return g, nil
}

func listenInside(ctx context.Context, client *agentclient.Client) (*agentclient.Listener, error) {
	l, err := client.Listen(ctx, gatePort)
	var known *agentproto.Error
	if errors.As(err, &known) && known.Code == agentproto.CodeBusy {
		return nil, fmt.Errorf("%w: a program has taken the proxy's port: end it", err)
	}
	return l, err
}

// plant writes files inside.
func plant(ctx context.Context, client *agentclient.Client, files []proxyenv.File) error {
	for _, f := range files {
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

// keep serves one listener after the other, since the agent outlives its streams.
func (g *gate) keep(l *agentclient.Listener) {
	slots := make(chan struct{}, gateConnections)
	for l != nil {
		g.serve(l, slots)
		l.Close()
		l = g.again()
	}
}

// serve takes connections until the listener has ended.
func (g *gate) serve(l *agentclient.Listener, slots chan struct{}) {
	for {
		id, err := l.Next(g.ctx)
		if err != nil {
			return
		}
		select {
		case slots <- struct{}{}:
		case <-g.ctx.Done():
			return
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
// whoever reaches the agent next.
func (g *gate) again() *agentclient.Listener {
	for g.ctx.Err() == nil {
		if client, err := g.link.get(g.ctx); err == nil {
			if l, err := listenInside(g.ctx, client); err == nil {
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

// nudge has a gate that was lost try again.
func (g *gate) nudge() {
	select {
	case g.wake <- struct{}{}:
	default:
	}
}

// close ends all connections and waits until they have ended.
func (g *gate) close() {
	g.cancel()
	g.proxy.Close()
	g.wg.Wait()
}
