package kubernetes

import (
	"cmp"
	"crypto/rand"
	"fmt"
	"strings"
	"sync/atomic"

	networkingv1 "k8s.io/api/networking/v1"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/client-go/rest"

	"github.com/llmsandbox/llmsandbox/backend"
	"github.com/llmsandbox/llmsandbox/internal/ctxlock"
	"github.com/llmsandbox/llmsandbox/internal/kubernetes/access"
	"github.com/llmsandbox/llmsandbox/internal/kubernetes/podexec"
	"github.com/llmsandbox/llmsandbox/internal/kubernetes/podspec"
	"github.com/llmsandbox/llmsandbox/internal/kubernetes/podwatch"
)

// Name is the backend's name.
const Name = "kubernetes"

// A Backend makes sandboxes in one namespace of one cluster. It is safe for concurrent use.
type Backend struct {
	options Options
	cluster *access.Cluster
	exec    *podexec.Dialer
	source  PodSource
	owner   *owner
	watch   *podwatch.Watcher // of the pods of this owner

	isolating ctxlock.Mutex                              // of making sure of what follows
	isolated  atomic.Pointer[networkingv1.NetworkPolicy] // as it was seen; nil: not yet
}

var _ backend.Backend = (*Backend)(nil)

// New returns a backend; nil options are the defaults. Nothing is asked of the cluster yet. It fails with
// backend.ErrInvalid for options that make no sense or exclude each other, and with
// backend.ErrUnsupported where there is no cluster.
func New(opts *Options) (*Backend, error) {
	o, err := cmp.Or(opts, &Options{}).resolve()
	if err != nil {
		return nil, err
	}
	c, err := access.Find(o.access())
	if err != nil {
		return nil, err
	}
	return newBackend(c, o)
}

// newBackend returns a backend with options that are resolved.
func newBackend(c *access.Cluster, o Options) (*Backend, error) {
	dialer, err := podexec.New(c.Config)
	if err != nil {
		return nil, err
	}
	b := &Backend{
		options: o, cluster: c, exec: dialer, source: o.Source, isolating: ctxlock.New(),
		owner: newOwner(c, strings.ToLower(rand.Text()), o.TTL),
	}
	if b.source == nil {
		b.source = creator{c.Client.CoreV1().Pods(c.Namespace)}
	}
	b.watch = podwatch.New(c.Client, c.Namespace, podspec.LabelOwner+"="+b.owner.id)
	b.watch.WaitForNode = o.WaitForNode
	return b, nil
}

// Name is "kubernetes".
func (b *Backend) Name() string { return Name }

// Close closes the connections to the cluster that are idle. Sandboxes live on.
func (b *Backend) Close() error {
	// All clients of one configuration share its connections.
	client, err := rest.HTTPClientFor(b.cluster.Config)
	if err != nil {
		return fmt.Errorf("close the connections to the cluster: %w", err)
	}
	utilnet.CloseIdleConnectionsFor(client.Transport)
	return nil
}
