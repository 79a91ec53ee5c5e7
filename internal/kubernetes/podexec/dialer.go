// Package podexec opens byte streams into the containers of pods and runs programs there.
//
// A stream goes over one WebSocket (the v5.channel.k8s.io protocol) to the API server, or
// over SPDY where the server or something on the way to it has no WebSockets. client-go's
// remotecommand is not used: it copies between readers and writers until all is over, so
// that its caller learns neither when the stream is open nor can close it at once, and its
// keep-alive takes a minute to find a dead connection, or, over SPDY, never finds one.
//
// What the other side sends is not trusted: it is read only as fast as the caller reads,
// and what is kept of it is bounded.
package podexec

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/transport"
)

// How often a stream asks for a sign of life, and how long it waits for one.
const (
	DefaultPingPeriod = 5 * time.Second
	DefaultDeadAfter  = 25 * time.Second
)

// A Target is a container of a pod.
type Target struct{ Namespace, Pod, Container string }

func (t Target) String() string {
	return fmt.Sprintf("container %s of pod %s/%s", t.Container, t.Namespace, t.Pod)
}

// A Dialer opens streams into containers. Its methods may be called concurrently; its
// fields may not be changed while they are.
type Dialer struct {
	Config *rest.Config
	// Client makes the requests' addresses; it asks for nothing.
	Client rest.Interface
	// PingPeriod is how often each stream asks the API server for a sign of life.
	// Zero means DefaultPingPeriod.
	PingPeriod time.Duration
	// DeadAfter is how long a stream that waits for something gets no sign of life until
	// it counts as lost. Zero means DefaultDeadAfter. Whether the node and the program
	// live, the API server's answers do not show.
	DeadAfter time.Duration
}

// New returns a Dialer for a cluster. Nothing is asked of it.
func New(c *rest.Config) (*Dialer, error) {
	base, path, err := rest.DefaultServerUrlFor(&rest.Config{
		Host: c.Host, TLSClientConfig: c.TLSClientConfig, APIPath: "/api",
		ContentConfig: rest.ContentConfig{GroupVersion: &corev1.SchemeGroupVersion},
	})
	if err != nil {
		return nil, fmt.Errorf("a client for streams into pods: %w", err)
	}
	client, err := rest.NewRESTClient(base, path, rest.ClientContentConfig{GroupVersion: corev1.SchemeGroupVersion}, nil, nil)
	if err != nil {
		return nil, fmt.Errorf("a client for streams into pods: %w", err)
	}
	return &Dialer{Config: c, Client: client}, nil
}

// Connect starts a program in a container, and returns when there is a stream to it. That
// it cannot be started comes out of the stream's Read: as ErrGone, ErrNoProgram, or in the
// server's message. The context ends the waiting, not the stream.
func (d *Dialer) Connect(ctx context.Context, t Target, argv ...string) (*Stream, error) {
	return d.exec(ctx, t, true, argv)
}

func (d *Dialer) exec(ctx context.Context, t Target, stdin bool, argv []string) (*Stream, error) {
	s, err := d.open(ctx, t, "exec", stdin, &corev1.PodExecOptions{
		Container: t.Container, Command: argv, Stdin: stdin, Stdout: true, Stderr: true,
	})
	if err != nil {
		return nil, fmt.Errorf("run %.100q in %s: %w", argv, t, err)
	}
	return s, nil
}

// Attach takes the streams of a container's own program. What it said before is not in
// them, and at the end there is no ExitError.
func (d *Dialer) Attach(ctx context.Context, t Target) (*Stream, error) {
	s, err := d.open(ctx, t, "attach", true, &corev1.PodAttachOptions{
		Container: t.Container, Stdin: true, Stdout: true, Stderr: true,
	})
	if err != nil {
		return nil, fmt.Errorf("attach to %s: %w", t, err)
	}
	return s, nil
}

// open tries WebSocket, and then SPDY where that may do better.
func (d *Dialer) open(ctx context.Context, t Target, what string, stdin bool, options runtime.Object) (*Stream, error) {
	pings := d.pings()
	ctx, cancel := context.WithTimeoutCause(ctx, connectTimeout,
		fmt.Errorf("the API server has not answered within %s", connectTimeout))
	defer cancel()
	s, err := readSettings(d.Config)
	if err != nil {
		return nil, err
	}
	url := d.Client.Get().Namespace(t.Namespace).Resource("pods").Name(t.Pod).SubResource(what).
		VersionedParams(options, scheme.ParameterCodec).URL().String()
	r := new(record)
	w, live, err := openWebSocket(ctx, s, url, r)
	if err == nil {
		return newStream(w, live, r, pings), nil
	}
	if !otherWay(err) {
		return nil, err
	}
	p, live, spdyErr := openSPDY(ctx, s, url, stdin, r, pings.period)
	if spdyErr == nil {
		return newStream(p, live, r, pings), nil
	}
	return nil, fmt.Errorf("%w (and over WebSocket: %w)", spdyErr, err)
}

func (d *Dialer) pings() pings {
	p := pings{period: d.PingPeriod, dead: d.DeadAfter}
	if p.period <= 0 {
		p.period = DefaultPingPeriod
	}
	if p.dead <= 0 {
		p.dead = DefaultDeadAfter
	}
	return p
}

// connectTimeout bounds how long one connection to the API server may take to be made.
const connectTimeout = 30 * time.Second

type dialFunc = func(ctx context.Context, network, address string) (net.Conn, error)

// settings are how the API server is reached.
type settings struct {
	config *rest.Config
	tls    *tls.Config
	proxy  func(*http.Request) (*url.URL, error)
	dial   dialFunc
}

// readSettings reads what a configuration names. Certificates may be files that another program
// renews, so it is done for each stream.
func readSettings(c *rest.Config) (settings, error) {
	tc, err := c.TransportConfig()
	if err != nil {
		return settings{}, err
	}
	s := settings{config: c, proxy: tc.Proxy}
	if s.tls, err = transport.TLSConfigFor(tc); err != nil {
		return settings{}, err
	}
	if s.proxy == nil {
		s.proxy = utilnet.NewProxierWithNoProxyCIDR(http.ProxyFromEnvironment)
	}
	s.dial = (&net.Dialer{Timeout: connectTimeout}).DialContext
	if tc.DialHolder != nil && tc.DialHolder.Dial != nil {
		s.dial = tc.DialHolder.Dial
	}
	return s, nil
}

// trip adds the configuration's credentials to what t is asked for.
func (s settings) trip(t http.RoundTripper, ctx context.Context, method, url string, h http.Header) (*http.Response, error) {
	rt, err := rest.HTTPWrappersForConfig(s.config, t)
	if err != nil {
		return nil, err
	}
	req, err := http.NewRequestWithContext(ctx, method, url, nil)
	if err != nil {
		return nil, err
	}
	req.Header = h
	return rt.RoundTrip(req)
}

// Run runs a program in a container to its end and returns its stdout. A code other than
// 0 is an *ExitError. When the program says more than limit bytes, Run fails with
// ErrTooMuch. in may be nil; Run does not return while a Read of it is pending. When the
// context ends, so does the stream, with the program's stdin, but the program is not killed.
func (d *Dialer) Run(ctx context.Context, t Target, in io.Reader, limit int64, argv ...string) ([]byte, error) {
	s, err := d.exec(ctx, t, in != nil, argv)
	if err != nil {
		return nil, err
	}
	out, err := s.run(ctx, in, limit)
	if err != nil {
		return nil, fmt.Errorf("run %.100q in %s: %w", argv, t, err)
	}
	return out, nil
}

func (s *Stream) run(ctx context.Context, in io.Reader, limit int64) ([]byte, error) {
	stop := context.AfterFunc(ctx, func() { s.shut(context.Cause(ctx)) })
	defer stop()
	fed := make(chan error, 1)
	if in == nil {
		fed <- nil
	} else {
		go func() { fed <- s.feed(in) }()
	}
	var out bytes.Buffer
	n, err := io.Copy(&out, io.LimitReader(s, limit+1))
	if err == nil && n > limit {
		err = fmt.Errorf("%w: more than %d bytes", ErrTooMuch, limit)
	}
	_ = s.Close()
	var unread *sourceError
	if ferr := <-fed; errors.As(ferr, &unread) {
		return nil, unread.err
	}
	// A program may end without having read all: its code says whether that is an error.
	if err != nil {
		return nil, err
	}
	return out.Bytes(), nil
}

// feed writes in to the program's stdin. A source that fails ends the stream, not only
// stdin: the program would take that for all.
func (s *Stream) feed(in io.Reader) error {
	_, err := io.Copy(struct{ io.Writer }{s}, source{in})
	if _, ok := errors.AsType[*sourceError](err); ok {
		s.shut(err)
		return err
	}
	return errors.Join(err, s.CloseWrite())
}

// A source marks its reader's errors.
type source struct{ io.Reader }

type sourceError struct{ err error }

func (e *sourceError) Error() string { return e.err.Error() }
func (e *sourceError) Unwrap() error { return e.err }

func (s source) Read(p []byte) (int, error) {
	n, err := s.Reader.Read(p)
	if err != nil && err != io.EOF {
		err = &sourceError{err}
	}
	return n, err
}
