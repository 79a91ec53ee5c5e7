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
	"slices"
	"strings"

	"github.com/spf13/pflag"

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

// untilClosedName is the flag of a server that belongs to a program. Flags of needData make no sense there. Those of forOthers do, but not where a
// configuration has set them for a server that people and other machines use.
const (
	untilClosedName = "until-stdin-closes"
	needData        = "state database keep-audit max-images project-cpu-per-day project-egress-per-day replica-url oidc-issuer oidc-client-id oidc-client-secret-file oidc-grant oidc-scope"
	forOthers       = "tls-cert tls-key behind-proxy allow-origin allow-host ports-domain e2b"
)

// fitsOwner reports whether a configuration may set a flag of a command, which it may not for a server that belongs to a program if that is for another server.
func fitsOwner(flags *pflag.FlagSet, name string) bool {
	owned := flags.Lookup(untilClosedName)
	return owned == nil || owned.Value.String() != "true" || !slices.Contains(strings.Fields(needData+" "+forOthers), name)
}

// lifetime is ctx, and ends with standard input, too, where the server belongs to the program at its other end.
func (f *serveFlags) lifetime(ctx context.Context, flags *pflag.FlagSet) (context.Context, error) {
	if !f.untilClosed {
		return ctx, nil
	}
	for _, name := range strings.Fields(needData) {
		if flags.Changed(name) {
			return nil, fmt.Errorf("--%s and --until-stdin-closes exclude each other: a server that belongs to a program keeps no data", name)
		}
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
