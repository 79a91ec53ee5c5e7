package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/moby/moby/client"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/llmsandbox/llmsandbox/backend"
	"github.com/llmsandbox/llmsandbox/backend/docker"
	"github.com/llmsandbox/llmsandbox/backend/podman"
	"github.com/llmsandbox/llmsandbox/internal/ociimage"
)

// The names of the --backend flag. Micromamba is no engine of its own: its sandboxes are
// Docker's, with every program started in an environment.
const (
	localName      = "local"
	micromambaName = "micromamba"
)

var backendNames = []string{localName, docker.Name, podman.Name, micromambaName, kubernetesName}

// A place is where a command finds or makes its sandboxes. It travels to a supervisor as
// JSON.
type place struct {
	Backend   string
	Isolation string // of the local backend
	Engine    engineFlags
	Cluster   clusterFlags
	Claims    claimFlags
	Pod       podFlags
}

// register adds the flags that say where: --backend and a cluster's.
func (p *place) register(set *pflag.FlagSet) {
	set.StringVar(&p.Backend, "backend", localName, "`BACKEND`: "+strings.Join(backendNames, ", "))
	set.StringVar(&p.Isolation, "isolation", "auto", "`ISOLATION` of the local backend: auto, namespace, or process, which any container allows")
	p.Cluster.register(set)
}

// on gives a command the flags that say where.
func (p *place) on(cmd *cobra.Command) *cobra.Command {
	p.register(cmd.Flags())
	return cmd
}

// open returns the backend, of which nothing is asked yet.
func (p *place) open() (backend.Backend, error) {
	if err := p.checkCluster(); err != nil {
		return nil, err
	}
	switch p.Backend {
	case localName:
		return localBackend(p.Isolation)
	case docker.Name, podman.Name, micromambaName:
		b, err := p.engine()
		if err != nil {
			return nil, placed(p, err) // not a nil *engine.Backend in an interface
		}
		return b, nil
	case kubernetesName:
		b, err := p.cluster()
		if err != nil {
			return nil, placed(p, err)
		}
		return b, nil
	}
	return nil, unknownBackend(p.Backend)
}

// onEngine tells whether a container engine runs the sandboxes.
func (p *place) onEngine() bool {
	return p.Backend == docker.Name || p.Backend == podman.Name || p.Backend == micromambaName
}

// onCluster tells whether a Kubernetes cluster runs the sandboxes.
func (p *place) onCluster() bool { return p.Backend == kubernetesName }

// commitsToFile tells whether the image of a sandbox becomes a file, since no engine keeps it.
func (p *place) commitsToFile() bool { return p.Backend == localName || p.onCluster() }

// unknownBackend says which names there are, and which of them may be meant.
func unknownBackend(name string) error {
	last := len(backendNames) - 1
	return fmt.Errorf("backend %q is not known%s: use %s or %s", name, didYouMean(name, backendNames), strings.Join(backendNames[:last], ", "), backendNames[last])
}

// didYouMean suggests, in brackets, the known name that is most like one; it is empty if none is.
func didYouMean(name string, known []string) string {
	menu := &cobra.Command{SuggestionsMinimumDistance: 3}
	for _, k := range known {
		menu.AddCommand(&cobra.Command{Use: k, Run: func(*cobra.Command, []string) {}})
	}
	if like := menu.SuggestionsFor(name); name != "" && len(like) > 0 {
		return " (did you mean " + like[0] + "?)"
	}
	return ""
}

// A placedError is an error that hints are given for by its backend.
type placedError struct {
	error
	place *place
	// engine is the container engine of this machine that has the image that the local backend does not
	// find; "" for none.
	engine string
}

func (e *placedError) Unwrap() error { return e.error }

// placed notes on an error where it happened.
func placed(p *place, err error) error {
	if err == nil {
		return nil
	}
	return &placedError{error: err, place: p}
}

// opening is placed for an error of opening a sandbox with an image.
func opening(ctx context.Context, p *place, image string, err error) error {
	if p.Backend != localName || image == "" || !errors.Is(err, backend.ErrImageNotFound) {
		return placed(p, err)
	}
	return &placedError{err, p, engineWith(ctx, image)}
}

// engineWith returns the container engine of this machine that has an image, or "". It is asked for a hint
// only: an engine that does not answer has none.
func engineWith(ctx context.Context, image string) string {
	if at, err := ociimage.Locate(image); err != nil || at.OnDisk() {
		return ""
	}
	image = strings.TrimPrefix(image, "docker://")
	if c, err := docker.NewClient(nil); err == nil && hasImage(ctx, c, image) {
		return "Docker"
	}
	if c, err := podman.NewClient(nil); err == nil && hasImage(ctx, c, image) {
		return "Podman"
	}
	return ""
}

// hasImage closes the client. The engine of another machine is not asked: that takes long, and ssh may want
// a password.
func hasImage(ctx context.Context, c *client.Client, image string) bool {
	defer c.Close()
	if !strings.HasPrefix(c.DaemonHost(), "unix://") {
		return false
	}
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	_, err := c.ImageInspect(ctx, image)
	return err == nil
}

// A given is a flag by its name, and whether it was given.
type given struct {
	name string
	set  bool
}

// named is the names of the flags that were given.
func named(flags []given) []string {
	var names []string
	for _, f := range flags {
		if f.set {
			names = append(names, f.name)
		}
	}
	return names
}

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
	StorageClass              string
	VolumeAccess              string // as Kubernetes writes it
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

// clusterOptions turns the flags into a cluster's options, which hold whatever directory is
// worked in later.
func (p *place) clusterOptions() (ClusterOptions, error) {
	f := &p.Pod
	o := ClusterOptions{
		Context: p.Cluster.Context, Namespace: p.Cluster.Namespace,
		Pod: f.Pod, Container: f.Container, Template: f.Template, RuntimeClass: f.RuntimeClass, AgentImage: f.AgentImage,
		PullSecrets: f.PullSecrets, ServiceAccount: f.ServiceAccount, NetworkPolicyEnforced: f.NetworkEnforced,
		StorageClass: p.Claims.StorageClass, VolumeAccess: p.Claims.Access,
	}
	if p.Cluster.Kubeconfig != "" {
		var err error
		if o.Kubeconfig, err = filepath.Abs(p.Cluster.Kubeconfig); err != nil {
			return o, fmt.Errorf("--kubeconfig: %w", err)
		}
	}
	err := cmp.Or(
		into(&o.PullPolicy)(pullPolicy(f.PullPolicy)),
		into(&o.NodeSelector)(pairs("node-selector", f.NodeSelector)),
		into(&o.WaitForNode)(durationFlag("wait-for-node", f.WaitForNode)),
		into(&o.StartTimeout)(durationFlag("start-timeout", f.StartTimeout)),
	)
	return o, err
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
