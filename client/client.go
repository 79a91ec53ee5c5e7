// Package client uses the sandboxes of a server of the HTTP API (package httpapi) by the calls that package llmsandbox has for its own.
//
//	c, err := client.New("https://sandboxes.example.org", key)
//	if err != nil {
//		log.Fatal(err)
//	}
//	sb, err := c.Open(ctx, &llmsandbox.Options{Language: "python"})
//	if err != nil {
//		log.Fatal(err)
//	}
//	defer sb.Close()
//	res, err := sb.Run(ctx, `print("hello")`, nil)
//
// An option that the API has no field for fails with [llmsandbox.ErrUnsupported], which names it; none is ignored. What a program prints
// is text in the API: what of it is not UTF-8 comes as U+FFFD. The content of files comes as it is.
//
// # Errors
//
// What a server refuses is an [Error], for which errors.Is finds the errors of package llmsandbox. [llmsandbox.ErrLost] means that the
// connection ended, or that the answer was none of this API: what was asked for may have been done or not. The result of a run is then
// StatusLost. A server that was not reached at all is another error, and a run's result StatusSetupFailed.
//
// A server that is busy, at a quota or does not serve at the moment says so (status 429 or 503) before it begins anything. If it also says when to
// come back, within 30 seconds, the call waits and is sent again, at most four times and as long as its context lasts. That of
// [Sandbox.WriteFileFrom] is not, since its reader has been read from. Nothing else is sent twice.
//
// When the context of a run ends, the request does too, and the server then kills the program.
package client

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strings"

	"github.com/llmsandbox/llmsandbox"
	"github.com/llmsandbox/llmsandbox/backend"
	"github.com/llmsandbox/llmsandbox/internal/apitypes"
)

// Options say how a client reaches its server. The zero value is that of [New].
type Options struct {
	// HTTPClient sends the requests; nil means one with the transport of http.DefaultClient. Its Timeout bounds the whole of an answer, runs and their
	// streams included. Its CheckRedirect is not used: no redirect is followed.
	HTTPClient *http.Client
	// MaxResult bounds the JSON of a run's result, artifacts included, and of each event of its stream, in bytes; 0 means 256 MiB. A larger one is
	// lost: it fails with llmsandbox.ErrLost.
	MaxResult int64
}

const (
	defaultMaxResult = 256 << 20
	mostMaxResult    = 1 << 40 // more than any memory
)

// A Client uses one server with one key. It is safe for concurrent use.
type Client struct {
	address   string // for people
	base      *url.URL
	http      http.Client
	authorize func(http.Header) // not the key itself, so that nothing prints it
	maxResult int64
}

// New makes a client of the server at an address such as https://sandboxes.example.org:8321, to which the key belongs; an empty one is for a
// server that asks for none. unix:PATH is a server on a Unix socket. Who can read the connection has the key: use http:// on the loopback only. New
// connects to nothing. It fails with llmsandbox.ErrInvalid.
func New(address, key string) (*Client, error) { return NewWith(address, key, nil) }

// NewWith is New with options, which may be nil.
func NewWith(address, key string, opts *Options) (*Client, error) {
	opts = cmp.Or(opts, &Options{})
	at := address
	socket, isUnix := strings.CutPrefix(address, "unix:")
	if isUnix {
		at = "http://localhost"
	}
	base, err := url.Parse(at)
	if err != nil {
		// The error would show the address, which may have a password in it.
		return nil, fmt.Errorf("client: address: %w: it is no URL: use one such as https://sandboxes.example.org:8321", llmsandbox.ErrInvalid)
	}
	switch {
	case isUnix && socket == "":
		return nil, fmt.Errorf("client: address: %w: unix: needs the path of a socket", llmsandbox.ErrInvalid)
	case base.Scheme != "https" && base.Scheme != "http" || base.Host == "":
		return nil, fmt.Errorf("client: address: %w: use https://HOST[:PORT], http:// on the loopback, or unix:PATH", llmsandbox.ErrInvalid)
	case base.User != nil || base.RawQuery != "" || base.ForceQuery || base.Fragment != "":
		return nil, fmt.Errorf("client: address: %w: it has a user, a query or a fragment: leave them out, the key is an argument of its own", llmsandbox.ErrInvalid)
	case strings.ContainsFunc(key, func(r rune) bool { return r <= ' ' || r > '~' }):
		return nil, fmt.Errorf("client: key: %w: it has spaces, line breaks or other characters that no key has", llmsandbox.ErrInvalid)
	case opts.MaxResult < 0:
		return nil, fmt.Errorf("client: MaxResult is %d: %w: use a number of bytes, or 0 for 256 MiB", opts.MaxResult, llmsandbox.ErrInvalid)
	}
	c := &Client{address: address, base: base, maxResult: min(cmp.Or(opts.MaxResult, defaultMaxResult), mostMaxResult), authorize: func(http.Header) {}}
	if opts.HTTPClient != nil {
		c.http = *opts.HTTPClient
	}
	if isUnix {
		if c.http.Transport, err = overSocket(c.http.Transport, socket); err != nil {
			return nil, err
		}
	}
	c.http.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	if key != "" {
		c.authorize = func(h http.Header) { h.Set("Authorization", "Bearer "+key) }
	}
	return c, nil
}

// overSocket is a transport as via that connects to a Unix socket, whatever host a URL names.
func overSocket(via http.RoundTripper, path string) (http.RoundTripper, error) {
	t, ok := cmp.Or(via, http.DefaultTransport).(*http.Transport)
	if !ok {
		return nil, fmt.Errorf("client: Options.HTTPClient: %w: for a Unix socket its Transport must be a *http.Transport, and it is a %T", llmsandbox.ErrInvalid, via)
	}
	t = t.Clone()
	t.Proxy = nil
	t.DialContext = func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "unix", path)
	}
	return t, nil
}

// String is the server's address.
func (c *Client) String() string { return c.address }

// Open makes a sandbox on the server; nil options are the server's defaults. It fails as [llmsandbox.Open] does, and with
// llmsandbox.ErrUnsupported for an option that the API does not have: it has all but Backend, Install, Mounts, Policy, KeepFiles, GPUs, Supervisor, ID,
// Progress and Logger, of Network Mode and Allow, and no limit that is Unlimited. A Template and an Environment are the server's, by their names.
//
// The sandbox lives on the server until it is closed or its lifetime ends, also when this program ends. After llmsandbox.ErrLost there may be one of which only
// [Client.List] knows.
func (c *Client) Open(ctx context.Context, opts *llmsandbox.Options) (*Sandbox, error) {
	body, err := newSandbox(cmp.Or(opts, &llmsandbox.Options{}))
	if err != nil {
		return nil, fmt.Errorf("open a sandbox: %w", err)
	}
	var made apitypes.Sandbox
	if err := c.call(ctx, &request{method: http.MethodPost, path: "/v1/sandboxes", body: body, want: http.StatusCreated}, &made); err != nil {
		return nil, fmt.Errorf("open a sandbox: %w", err)
	}
	sb, err := c.sandbox(&made)
	if err != nil {
		return nil, fmt.Errorf("open a sandbox: %w", err)
	}
	sb.owned = true
	return sb, nil
}

// Attach finds a sandbox of the key's project by its id. It fails with llmsandbox.ErrNotFound where there is none.
func (c *Client) Attach(ctx context.Context, id string) (*Sandbox, error) {
	if !isID(id) {
		return nil, fmt.Errorf("attach to sandbox %q: %w: an id is of [a-z0-9-], at most %d bytes", id, llmsandbox.ErrInvalid, maxID)
	}
	var found apitypes.Sandbox
	if err := c.call(ctx, &request{method: http.MethodGet, path: "/v1/sandboxes/" + id}, &found); err != nil {
		return nil, fmt.Errorf("attach to sandbox %s: %w", id, err)
	}
	if found.ID != id {
		return nil, fmt.Errorf("attach to sandbox %s: %w", id, malformed("it is about sandbox %q", found.ID))
	}
	return c.sandbox(&found)
}

// Bounds of a list.
const (
	pageSize = "1000"
	maxPages = 100
	// listings is how often a list is begun: what it was to go on behind may have ended meanwhile.
	listings = 3
)

// List returns the sandboxes of the key's project that have all of the labels, in the order in which they were created. A label with an empty
// value is one of that value. labels may be nil. Of each [backend.Info], Owner and Mounts are not known.
func (c *Client) List(ctx context.Context, labels map[string]string) ([]backend.Info, error) {
	query := url.Values{"limit": {pageSize}}
	for name, value := range labels {
		if strings.Contains(name, "=") {
			return nil, fmt.Errorf("list sandboxes: label %q: %w: the name has a '=', which the API cannot ask for", name, llmsandbox.ErrInvalid)
		}
		query.Add("label", name+"="+value)
	}
	for n := 1; ; n++ {
		list, err := c.list(ctx, query)
		var refused *Error
		if err == nil || n == listings || query.Get("after") == "" || !errors.As(err, &refused) || refused.Code != "invalid" {
			return list, err
		}
		query.Del("after")
	}
}

// list follows a list from page to page, of which query says after which sandbox it comes.
func (c *Client) list(ctx context.Context, query url.Values) (all []backend.Info, err error) {
	err = pages(ctx, c, "sandboxes", query, func(page apitypes.Sandboxes) string {
		for _, s := range page.Sandboxes {
			all = append(all, info(s))
		}
		return page.Next
	})
	return all, err
}

// pages gets a list of a kind page by page. take takes one, and returns after what the next one comes; empty: it was the last.
func pages[Page any](ctx context.Context, c *Client, kind string, query url.Values, take func(Page) (next string)) error {
	for range maxPages {
		var page Page
		if err := c.call(ctx, &request{method: http.MethodGet, path: "/v1/" + kind, query: query}, &page); err != nil {
			return fmt.Errorf("list %s: %w", kind, err)
		}
		next := take(page)
		if next == "" {
			return nil
		}
		query.Set("after", next)
	}
	return fmt.Errorf("list %s: %w", kind, malformed("it has no end after %d pages", maxPages))
}

func info(s apitypes.Sandbox) backend.Info {
	i := backend.Info{
		ID: s.ID, Backend: s.Backend, Image: s.Image, Language: s.Language, Created: s.Created, Deadline: s.Deadline, Paused: s.Paused, IdleTimeout: duration(s.Idle), Labels: s.Labels,
		Limits: backend.Limits{Memory: s.Limits.Memory, CPUs: s.Limits.CPUs, PIDs: s.Limits.PIDs, Disk: s.Limits.Disk},
	}
	for _, v := range s.Volumes {
		i.Volumes = append(i.Volumes, llmsandbox.VolumeMount(v))
	}
	return i
}

// Run runs code in a sandbox of its own on the server, which is removed when it has ended. opts may be nil; the API has of them Language, Image,
// Env, Limits without Output and other than Unlimited, Mode and Allow of Network, Libraries, Environment and Volumes. Otherwise it is
// [llmsandbox.Run]. See [Sandbox.Run] for what comes with an error.
func (c *Client) Run(ctx context.Context, code string, opts *llmsandbox.Options) (*llmsandbox.Result, error) {
	opts = cmp.Or(opts, &llmsandbox.Options{})
	body, err := oneShot(code, opts)
	if err != nil {
		return setupFailed("", opts.Language, fmt.Errorf("run: %w", err))
	}
	return c.run(ctx, &request{method: http.MethodPost, path: "/v1/run", body: body}, runFor{language: opts.Language})
}
