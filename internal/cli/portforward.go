package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"strconv"
	"strings"
	"sync"

	"github.com/spf13/cobra"

	"github.com/llmsandbox/llmsandbox"
)

// maxForwarded bounds connections at once.
const maxForwarded = 256

func newPortForwardCommand() *cobra.Command {
	var p place
	var address string
	cmd := &cobra.Command{
		Use:   "port-forward [flags] ID [HOSTPORT:]PORT...",
		Short: "Forward ports of this machine to a sandbox",
		Long: `Forward connections from a loopback port of this machine to a loopback port in the sandbox,
until interrupted. The sandbox needs no network. HOSTPORT 0 picks a free port and prints it.`,
		Example: `  llmsandbox exec --keep-children --shell "$id" 'python3 -m http.server 8000 &'
  llmsandbox port-forward "$id" 8000
  llmsandbox port-forward "$id" 0:8000 5433:5432`,
		Args: cobra.MinimumNArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			var pairs []forward
			for _, arg := range args[1:] {
				f, err := parseForward(arg)
				if err != nil {
					return err
				}
				pairs = append(pairs, f)
			}
			return onSandbox(cmd.Context(), &p, args[0], func(sb *llmsandbox.Sandbox) error {
				return forwardAll(cmd.Context(), sb, address, pairs)
			})
		},
	}
	p.register(cmd.Flags())
	cmd.Flags().StringVar(&address, "address", "127.0.0.1", "listen on this `ADDRESS`; other machines can reach any but a loopback address")
	return cmd
}

// A forward is a port of this machine and the one inside that it leads to.
type forward struct{ host, inside uint16 }

func parseForward(text string) (forward, error) {
	host, inside, both := strings.Cut(text, ":")
	if !both {
		inside = host
	}
	h, errHost := strconv.ParseUint(host, 10, 16)
	i, errInside := strconv.ParseUint(inside, 10, 16)
	if errHost != nil || errInside != nil || i == 0 {
		return forward{}, fmt.Errorf("port %q: use PORT or HOSTPORT:PORT, with ports of 1 to 65535, HOSTPORT also 0", text)
	}
	return forward{uint16(h), uint16(i)}, nil
}

// forwardAll listens, and carries connections until ctx or the sandbox ends.
func forwardAll(ctx context.Context, sb *llmsandbox.Sandbox, address string, pairs []forward) error {
	var listeners []net.Listener
	var all sync.WaitGroup
	defer all.Wait()
	defer func() {
		for _, l := range listeners {
			_ = l.Close() // its end is wanted
		}
	}()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var config net.ListenConfig
	for _, p := range pairs {
		l, err := config.Listen(ctx, "tcp", net.JoinHostPort(address, strconv.Itoa(int(p.host))))
		if err != nil {
			return fmt.Errorf("listen for port %d of the sandbox: %w", p.inside, err)
		}
		listeners = append(listeners, l)
		fmt.Printf("%s -> %s port %d\n", l.Addr(), sb.ID(), p.inside)
	}
	slots := make(chan struct{}, maxForwarded)
	failed := make(chan error, len(pairs))
	for i, l := range listeners {
		all.Go(func() {
			for {
				slots <- struct{}{} // each is given back, since ctx ends them all
				conn, err := l.Accept()
				if err != nil {
					<-slots
					failed <- err
					return
				}
				all.Go(func() {
					defer func() { <-slots }()
					if err := carry(ctx, sb, conn, pairs[i].inside); err != nil {
						printError(stderr, err)
					}
				})
			}
		})
	}
	select {
	case <-ctx.Done():
		return nil
	case <-sb.Done():
		return fmt.Errorf("sandbox %s has ended: %w", sb.ID(), llmsandbox.ErrClosed)
	case err := <-failed:
		return err
	}
}

// carry joins a connection to a port inside until both have ended.
func carry(ctx context.Context, sb *llmsandbox.Sandbox, outside net.Conn, port uint16) error {
	defer outside.Close()
	inside, err := sb.Dial(ctx, port)
	if err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("nothing listens on port %d inside the sandbox: start the server first, and let it listen on 127.0.0.1 or all addresses", port)
		}
		return err
	}
	defer inside.Close()
	defer context.AfterFunc(ctx, func() {
		_ = outside.Close()
		_ = inside.Close()
	})()
	answered := make(chan struct{})
	go func() {
		defer close(answered)
		copyHalf(outside, inside)
	}()
	copyHalf(inside, outside)
	<-answered
	return nil
}

// copyHalf copies one way to its end and tells the other side of it. A side that has
// broken is that side's affair: both are closed then.
func copyHalf(to, from net.Conn) {
	_, err := io.Copy(to, from)
	if half, ok := to.(interface{ CloseWrite() error }); ok && err == nil {
		_ = half.CloseWrite()
		return
	}
	_ = to.Close()
	_ = from.Close()
}
