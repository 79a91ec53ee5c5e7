package kubernetes

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"

	"github.com/llmsandbox/llmsandbox/backend"
	"github.com/llmsandbox/llmsandbox/internal/kubernetes/access"
	"github.com/llmsandbox/llmsandbox/internal/kubernetes/podspec"
)

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
	// Namespace is where sandboxes are made. Empty means the context's, or the pod's own,
	// or "default".
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
	// Template is laid over the safe pod by strategic merge. It is not changed.
	Template *corev1.PodTemplateSpec

	// Pod is the name of an existing pod to work in, and Container that of a container of
	// it, which may be left out where there is one. They are never deleted. The limits and
	// the isolation are their own.
	Pod, Container string

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
	if o.TTL == 0 {
		o.TTL = DefaultTTL
	}
	if o.StartTimeout == 0 {
		o.StartTimeout = DefaultStartTimeout
	}
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
	return o, nil
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
