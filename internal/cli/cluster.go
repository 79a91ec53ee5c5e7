package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/llmsandbox/llmsandbox/backend"
)

// kubernetesName is the name of the Kubernetes backend, which this package must not link.
const kubernetesName = "kubernetes"

// A Cluster is the Kubernetes backend, as far as the command needs it. To link its client
// costs each start of a program some milliseconds, which the sandboxes of other backends
// are not to wait for: so it is handed to Main by the one program that has it.
type Cluster interface {
	// Open returns the backend, of which nothing is asked yet.
	Open(o ClusterOptions) (backend.Backend, error)
	// Diagnose looks at a cluster; image is what the pods run that try its network, and
	// without probe there are none.
	Diagnose(ctx context.Context, o ClusterOptions, image string, probe bool) (ClusterReport, error)
	// Hint says what to do about an error of the backend; it is empty where nothing is
	// known that the error does not say.
	Hint(err error) string
}

// linked is the backend that Main was given, nil where this program has none.
var linked Cluster

// ClusterOptions are what the flags say of a cluster and of its pods.
type ClusterOptions struct {
	// Kubeconfig is an absolute path, or empty.
	Kubeconfig, Context, Namespace string

	// Pod and Container name a pod that exists.
	Pod, Container            string
	Template                  string // a file
	RuntimeClass, AgentImage  string
	PullPolicy                string // as Kubernetes writes it
	PullSecrets               []string
	ServiceAccount            string
	NodeSelector              map[string]string
	WaitForNode, StartTimeout time.Duration
	NetworkPolicyEnforced     bool
}

// A ClusterReport is what is found out of a cluster.
type ClusterReport struct {
	Findings []backend.Finding
	// Error is why no sandbox can work there.
	Error string
	// Backend is to try a sandbox with, and nil with an Error.
	Backend ClosingBackend
}

// A ClosingBackend is a backend with connections of its own.
type ClosingBackend interface {
	backend.Backend
	io.Closer
}

// errNotLinked is of a program that did not hand over.
var errNotLinked = errors.New("this program has no Kubernetes backend: use " + kubernetesProgram)

// cluster returns the backend of a cluster.
func (p *place) cluster() (backend.Backend, error) {
	o, err := p.clusterOptions()
	if err != nil {
		return nil, err
	}
	if linked == nil {
		return nil, errNotLinked
	}
	return linked.Open(o)
}

// clusterOptions turns the flags into a cluster's options, which hold whatever folder is
// worked in later.
func (p *place) clusterOptions() (ClusterOptions, error) {
	f := &p.Pod
	o := ClusterOptions{
		Context: p.Cluster.Context, Namespace: p.Cluster.Namespace,
		Pod: f.Pod, Container: f.Container, Template: f.Template, RuntimeClass: f.RuntimeClass, AgentImage: f.AgentImage,
		PullSecrets: f.PullSecrets, ServiceAccount: f.ServiceAccount, NetworkPolicyEnforced: f.NetworkEnforced,
	}
	var err error
	if p.Cluster.Kubeconfig != "" {
		if o.Kubeconfig, err = filepath.Abs(p.Cluster.Kubeconfig); err != nil {
			return o, fmt.Errorf("--kubeconfig: %w", err)
		}
	}
	if o.PullPolicy, err = pullPolicy(f.PullPolicy); err != nil {
		return o, err
	}
	if len(f.NodeSelector) > 0 {
		if o.NodeSelector, err = pairs("node-selector", f.NodeSelector); err != nil {
			return o, err
		}
	}
	if o.WaitForNode, err = waitFlag("wait-for-node", f.WaitForNode); err != nil {
		return o, err
	}
	o.StartTimeout, err = waitFlag("start-timeout", f.StartTimeout)
	return o, err
}

// waitFlag reads how long to wait; nothing is zero.
func waitFlag(name, text string) (time.Duration, error) {
	if text == "" {
		return 0, nil
	}
	d, err := time.ParseDuration(text)
	if err != nil || d <= 0 {
		return 0, fmt.Errorf("--%s %q: use a duration above 0 such as 5m", name, text)
	}
	return d, nil
}

// pullPolicy reads one in capitals or not.
func pullPolicy(text string) (string, error) {
	all := []string{"Always", "IfNotPresent", "Never"}
	i := slices.IndexFunc(all, func(p string) bool { return strings.EqualFold(p, text) })
	switch {
	case text == "":
		return "", nil
	case i < 0:
		return "", fmt.Errorf("--pull-policy %q: use Always, IfNotPresent or Never", text)
	}
	return all[i], nil
}
