package podexec

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
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
