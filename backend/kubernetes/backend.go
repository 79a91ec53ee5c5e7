// Package kubernetes runs sandboxes as pods of a Kubernetes cluster: one sandbox, one pod.
//
// The guest agent is the main process of the pod's container "sandbox". An init container
// brings it into a volume that the code can only read. One long stream reaches it, through
// pods/exec, so that a run costs the API server nothing; when the stream breaks it is made
// again and the run goes on.
//
// All pods of one [Backend] belong to a Job that never makes a pod and whose deadline the
// Backend keeps pushing forward. When its process dies the deadline stays, the Job's time runs
// out, and the cluster itself removes the Job and the pods with it.
package kubernetes

import (
	"cmp"
	"context"
	"crypto/rand"
	"fmt"
	"strings"
	"sync/atomic"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
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
	b.watch = podwatch.New(c.Client, c.Namespace, podspec.LabelOwner+"="+b.owner.id, podspec.Container)
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

const (
	// DefaultTTL is how long a sandbox lives at most when its owner has died.
	DefaultTTL = 3 * time.Minute
	// DefaultStartTimeout bounds the start of a pod; it is mostly for pulling its image.
	DefaultStartTimeout = 10 * time.Minute

	// minTTL leaves a heartbeat the time to be late.
	minTTL = 6 * time.Second
)

// Options say which cluster is used and how its sandboxes are made. The zero value uses
// the cluster that kubectl would use, with safe defaults.
type Options struct {
	// Kubeconfig is a kubeconfig file. Empty means the files of KUBECONFIG, or
	// ~/.kube/config, or, where that is not there, the service account of the pod that
	// this process runs in.
	Kubeconfig string
	// Context is a context of the kubeconfig; empty means the current one.
	Context string
	// Config connects to the cluster in place of Kubeconfig and Context. It is not changed.
	Config *rest.Config
	// Namespace is where sandboxes are made. Empty means the Template's, or the context's, or
	// the pod's own, or "default".
	Namespace string
	// QPS and Burst limit the requests to the API server; zero means 50 a second on
	// average, and 200 at once.
	QPS   float32
	Burst int

	// Images is the image of a language, by its name, in place of the default one.
	Images map[string]string
	// PullPolicy says when nodes pull images; empty is the cluster's default for the tag.
	PullPolicy corev1.PullPolicy
	// PullSecrets are the names of secrets with the credentials of registries.
	PullSecrets []string
	// AgentImage is the image that brings the guest agent. Where it is empty the agent is
	// sent into each pod, through an init container of the sandbox's own image, which then
	// must have sh, dd, uname and chmod.
	AgentImage string

	// RuntimeClass is the container runtime, such as "gvisor".
	RuntimeClass string
	// ServiceAccount is the pod's identity in the cluster. It gets no token.
	ServiceAccount string
	// NodeSelector are labels that a node must have.
	NodeSelector map[string]string
	// Template is laid over the safe pod by strategic merge. It is not changed. Its Name is not used: pods are named
	// after their sandboxes. Its Namespace must be that of the option where both are set.
	Template *corev1.PodTemplateSpec

	// Pod is the name of an existing pod to work in, and Container that of a container of
	// it, which may be left out where there is one. They are never deleted. The limits and
	// the isolation are their own.
	Pod, Container string

	// StorageClass is that of the volumes that are created; empty is the cluster's default.
	StorageClass string
	// VolumeAccess is the access mode of the volumes that are created. Empty is ReadWriteOnce, which
	// every storage driver has: sandboxes that have a volume at the same time are on one node. With
	// ReadWriteMany they may be on several, where the driver has it.
	VolumeAccess corev1.PersistentVolumeAccessMode

	// NetworkPolicyEnforced says that the cluster is known to enforce NetworkPolicies, whatever
	// doctor has seen. Without it what doctor has kept in the namespace counts, and where it has
	// kept nothing Capabilities do not call the network closed.
	NetworkPolicyEnforced bool

	// WaitForNode is how long a pod that fits on no node is waited for, such as for an
	// autoscaler; 0 gives up at once.
	WaitForNode time.Duration
	// StartTimeout bounds the start of a sandbox; 0 means DefaultStartTimeout.
	StartTimeout time.Duration
	// TTL is how long sandboxes outlive an owner that has died, at most; 0 means
	// DefaultTTL. An agent without a connection ends much earlier.
	TTL time.Duration

	// Source is where pods come from; nil creates each.
	Source PodSource
	// CacheDir is where layers are kept; empty is the user's cache directory.
	CacheDir string
}

// resolve fills in defaults, and refuses what makes no sense.
func (o Options) resolve() (Options, error) {
	o.TTL = cmp.Or(o.TTL, DefaultTTL)
	o.StartTimeout = cmp.Or(o.StartTimeout, DefaultStartTimeout)
	switch {
	case o.TTL < minTTL:
		return o, fmt.Errorf("%w: a TTL of %v is too short for a heartbeat: use at least %v", backend.ErrInvalid, o.TTL, minTTL)
	case o.StartTimeout < 0 || o.WaitForNode < 0:
		return o, fmt.Errorf("%w: a time to wait cannot be negative", backend.ErrInvalid)
	case o.Config != nil && (o.Kubeconfig != "" || o.Context != ""):
		return o, fmt.Errorf("%w: Config is used in place of Kubeconfig and Context: leave them or it out", backend.ErrInvalid)
	case o.Container != "" && o.Pod == "":
		return o, fmt.Errorf("%w: container %q of which pod? Name the pod, too", backend.ErrInvalid, o.Container)
	case o.Pod != "" && o.setsPod():
		return o, fmt.Errorf("%w: options of a pod that is made cannot be used with the existing pod %s: leave one out", backend.ErrInvalid, o.Pod)
	}
	if o.Template != nil {
		if err := podspec.Validate(o.Template); err != nil {
			return o, fmt.Errorf("pod template: %w", err)
		}
	}
	var err error
	o.Namespace, err = podspec.Namespace(o.Namespace, o.Template)
	return o, err
}

// access says which cluster is used.
func (o Options) access() access.Options {
	return access.Options{Kubeconfig: o.Kubeconfig, Context: o.Context, Config: o.Config, Namespace: o.Namespace, QPS: o.QPS, Burst: o.Burst}
}

// setsPod reports whether an option says how a pod is made.
func (o Options) setsPod() bool {
	return o.Template != nil || o.AgentImage != "" || o.RuntimeClass != "" || o.ServiceAccount != "" || o.PullPolicy != "" ||
		len(o.NodeSelector) > 0 || len(o.PullSecrets) > 0 || len(o.Images) > 0 || o.Source != nil || o.WaitForNode != 0
}

// Capabilities returns what a sandbox with the backend's options would be held to.
func (b *Backend) Capabilities(ctx context.Context) (backend.Capabilities, error) {
	if b.options.Pod != "" {
		return b.existingCapabilities(ctx)
	}
	pod, err := b.plan(backend.Spec{
		ID: "capabilities", Language: "python", BestEffort: true, Deadline: time.Now().Add(time.Hour),
		Limits: backend.Limits{Memory: 1 << 30, CPUs: 1, PIDs: 1 << 10, Disk: 1 << 30},
	}, podspec.NewUID())
	if err != nil {
		return backend.Capabilities{}, err
	}
	if err := b.lookAtPolicy(ctx); err != nil {
		return backend.Capabilities{}, err
	}
	may, err := b.mayOwn(ctx)
	if err != nil {
		return backend.Capabilities{}, err
	}
	if may {
		pod.OwnerReferences = []metav1.OwnerReference{{Kind: "Job", Name: ownerName(b.owner.id)}}
	}
	return b.controls(pod, backend.Limits{Memory: 1, CPUs: 1, PIDs: 1, Disk: 1}), nil
}

// controls returns the controls of a pod that this package made.
func (b *Backend) controls(pod *corev1.Pod, limits backend.Limits) backend.Capabilities {
	return podspec.Controls(pod, limits, b.policies(pod))
}

// mayOwn asks whether the cluster lets us make the Job that owns sandboxes.
func (b *Backend) mayOwn(ctx context.Context) (bool, error) {
	review := &authorizationv1.SelfSubjectAccessReview{Spec: authorizationv1.SelfSubjectAccessReviewSpec{
		ResourceAttributes: &authorizationv1.ResourceAttributes{
			Namespace: b.cluster.Namespace, Verb: "create", Group: "batch", Resource: "jobs",
		},
	}}
	answer, err := b.cluster.Client.AuthorizationV1().SelfSubjectAccessReviews().Create(ctx, review, metav1.CreateOptions{})
	if err != nil {
		return false, access.Explain("ask what the cluster allows", err)
	}
	return answer.Status.Allowed, nil
}
