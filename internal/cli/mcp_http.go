package cli

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"

	"github.com/spf13/pflag"

	"github.com/llmsandbox/llmsandbox/mcp"
)

// mcpHTTPFlags are the flags of a server over HTTP.
type mcpHTTPFlags struct {
	address    string
	tokenFile  string
	noToken    bool
	origins    []string
	hosts      []string
	maxClients int
}

func (f *mcpHTTPFlags) register(set *pflag.FlagSet) {
	set.StringVar(&f.address, "http", "", "serve streamable HTTP on this `ADDRESS`, such as 127.0.0.1:8765 (port 0: any) instead of standard input and output")
	set.StringVar(&f.tokenFile, "token-file", "", "with --http: `FILE` with the bearer tokens, one a line; made with a new token if it is not there (default: a new token, printed on standard error)")
	set.BoolVar(&f.noToken, "no-token", false, "with --http on the loopback: let every program and user of this machine in")
	set.StringArrayVar(&f.origins, "allow-origin", nil, "with --http: let pages of this `ORIGIN` in, such as https://app.example.org (repeatable)")
	set.StringArrayVar(&f.hosts, "allow-host", nil, "with --http: a `NAME` the server is reached by, beside its address and localhost (repeatable)")
	set.IntVar(&f.maxClients, "max-clients", 64, "with --http: clients that may be connected at the same time")
}

// options checks the flags and makes what they say.
func (f *mcpHTTPFlags) options() (mcp.HTTPOptions, error) {
	o := mcp.HTTPOptions{Origins: f.origins, Hosts: f.hosts, MaxClients: f.maxClients}
	switch {
	case f.address == "" && (f.tokenFile != "" || f.noToken || len(f.origins)+len(f.hosts) > 0):
		return o, errors.New("--token-file, --no-token, --allow-origin and --allow-host are for --http: add --http ADDRESS")
	case f.address == "":
		return o, nil
	case f.noToken && f.tokenFile != "":
		return o, errors.New("--no-token and --token-file exclude each other: leave one of them out")
	case f.maxClients < 1:
		return o, errors.New("--max-clients: use a number above 0")
	}
	if host, _, err := net.SplitHostPort(f.address); err != nil || host == "" {
		return o, fmt.Errorf("--http %q: use ADDRESS:PORT, such as 127.0.0.1:8765; all addresses of the machine are 0.0.0.0:PORT", f.address)
	}
	return o, nil
}

// serve listens and says on standard error where, and how to get in.
func (f *mcpHTTPFlags) serve(ctx context.Context, server *mcp.Server, o mcp.HTTPOptions) error {
	l, err := new(net.ListenConfig).Listen(ctx, "tcp", f.address)
	if err != nil {
		return fmt.Errorf("--http: %w", err)
	}
	word := ""
	switch {
	case f.noToken:
		fmt.Fprintln(os.Stderr, "llmsandbox: WARNING: no token: every program and every user of this machine can run code here")
	case f.tokenFile != "":
		var made bool
		if o.Tokens, made, err = mcp.TokenFile(f.tokenFile); err != nil {
			return errors.Join(fmt.Errorf("--token-file: %w", err), l.Close())
		}
		if made {
			word = "; a new token is in " + f.tokenFile
		}
	default:
		o.Tokens = []string{mcp.NewToken()}
		word = "; the token is " + o.Tokens[0]
	}
	if tcp, ok := l.Addr().(*net.TCPAddr); ok && !tcp.IP.IsLoopback() {
		fmt.Fprintln(os.Stderr, "llmsandbox: WARNING: others reach this address, and HTTP carries the token in the clear: put a proxy that speaks TLS before it")
	}
	fmt.Fprintf(os.Stderr, "llmsandbox: serving on http://%s%s%s\n", l.Addr(), mcp.HTTPPath, word)
	return server.RunHTTP(ctx, l, &o)
}
