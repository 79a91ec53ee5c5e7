package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"os"
	"strings"

	"github.com/llmsandbox/llmsandbox/httpapi"
	"github.com/llmsandbox/llmsandbox/internal/unixsocket"
)

// unixScheme begins an address that is the path of a Unix socket.
const unixScheme = "unix:"

// listener listens on the address of --listen.
func (f *serveFlags) listener(ctx context.Context) (net.Listener, error) {
	if path, ok := strings.CutPrefix(f.listen, unixScheme); ok {
		return unixsocket.Listen(path)
	}
	return new(net.ListenConfig).Listen(ctx, "tcp", f.listen)
}

// checkListen fails for an address on which no server can listen, and for one on which it cannot have the other flags.
func (f *serveFlags) checkListen() error {
	if path, ok := strings.CutPrefix(f.listen, unixScheme); ok {
		switch {
		case path == "":
			return errors.New("--listen unix: needs the path of a socket, such as unix:/run/llmsandbox/api.sock")
		case f.cert != "":
			return errors.New("--tls-cert is for addresses that others reach, and a Unix socket is none: leave it out")
		}
		return nil
	}
	if host, _, err := net.SplitHostPort(f.listen); err != nil || host == "" {
		return fmt.Errorf("--listen %q: use ADDRESS:PORT, such as 127.0.0.1:8321, or unix:PATH; all addresses of the machine are 0.0.0.0:PORT", f.listen)
	}
	return nil
}

// checkUntilClosed fails for flags that need data, which a server that belongs to a program does not keep.
func (f *serveFlags) checkUntilClosed() error {
	needData := named([]given{
		{"oidc-issuer", f.oidc.issuer != ""}, {"replica-url", f.replicaURL != ""}, {"max-images", f.maxImages > 0},
		{"project-cpu-per-day", f.maxDayCPU != ""}, {"project-egress-per-day", f.maxDaySent != ""},
	})
	if f.untilClosed && len(needData) > 0 {
		return fmt.Errorf("--%s needs data that outlives the server, and with --until-stdin-closes it keeps none: leave one of them out", needData[0])
	}
	return nil
}

// lifetime is ctx, and ends with standard input, too, where the server belongs to the program at its other end.
func (f *serveFlags) lifetime(ctx context.Context) (context.Context, error) {
	if !f.untilClosed {
		return ctx, nil
	}
	info, err := os.Stdin.Stat()
	switch {
	case err != nil:
		return nil, fmt.Errorf("--until-stdin-closes: %w", err)
	case info.Mode()&(fs.ModeNamedPipe|fs.ModeSocket) == 0:
		return nil, errors.New("--until-stdin-closes: standard input is no pipe: have the program that the server belongs to start it with one, and keep the other end open")
	}
	ctx, cancel := context.WithCancel(ctx)
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin) // an error is an end as well
		cancel()
	}()
	return ctx, nil
}

// ready is what the program that a server belongs to reads once it serves.
type ready struct {
	URL string `json:"url"`
	Key string `json:"key,omitempty"`
}

// printReady tells where the server is reached. own is the key that it has made, if it has.
func (f *serveFlags) printReady(l net.Listener, own string, server *httpapi.Server) error {
	url, isUnix := "http://"+l.Addr().String(), l.Addr().Network() == "unix"
	switch {
	case isUnix:
		url = unixScheme + l.Addr().String()
	case f.cert != "":
		url = "https://" + l.Addr().String()
	}
	if f.untilClosed {
		if err := json.NewEncoder(os.Stdout).Encode(ready{url, own}); err != nil {
			return fmt.Errorf("tell the program that the server belongs to where it is: %w", err)
		}
		return nil
	}
	if own == "" {
		fmt.Fprintf(os.Stderr, "llmsandbox: serving on %s\n", url)
	} else {
		fmt.Fprintf(os.Stderr, "llmsandbox: serving on %s; the key, until it ends, is %s\n", url, own)
	}
	if isUnix { // which neither browsers nor the SDKs of E2B connect to
		return nil
	}
	if own != "" {
		fmt.Fprintf(os.Stderr, "llmsandbox: open %s/login#%s (once, within 15 minutes)\n", url, server.LoginToken(own))
	}
	if f.e2b {
		f.printE2B(url, own)
	}
	return nil
}
