package cli

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"github.com/spf13/pflag"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/klog/v2"

	"github.com/llmsandbox/llmsandbox/backend/kubernetes"
	"github.com/llmsandbox/llmsandbox/backend/kubernetes/access"
	"github.com/llmsandbox/llmsandbox/backend/kubernetes/podspec"
)

// clusterFlags say where a cluster is. Every command that finds sandboxes has them.
type clusterFlags struct {
	Kubeconfig string
	Context    string
	Namespace  string
}

// onKubernetes begins what a flag says that is for clusters only.
const onKubernetes = "on kubernetes: "

func (f *clusterFlags) register(set *pflag.FlagSet) {
	set.StringVar(&f.Kubeconfig, "kubeconfig", "", onKubernetes+"`FILE` that tells how the cluster is reached (default: KUBECONFIG, ~/.kube/config, or the pod that this runs in)")
	set.StringVar(&f.Context, "kube-context", "", onKubernetes+"`CONTEXT` of the kubeconfig (default: its current one)")
	set.StringVar(&f.Namespace, "namespace", "", onKubernetes+"`NAMESPACE` of the pods (default: the context's)")
}

// given is the flags that were given, by name, in the order of errors.
func (f *clusterFlags) given() []string {
	return named([]given{{"kubeconfig", f.Kubeconfig != ""}, {"kube-context", f.Context != ""}, {"namespace", f.Namespace != ""}})
}

// options says where the cluster is, whatever folder is worked in later.
func (f *clusterFlags) options() (access.Options, error) {
	o := access.Options{Context: f.Context, Namespace: f.Namespace}
	if f.Kubeconfig == "" {
		return o, nil
	}
	var err error
	if o.Kubeconfig, err = filepath.Abs(f.Kubeconfig); err != nil {
		return o, fmt.Errorf("--kubeconfig: %w", err)
	}
	return o, nil
}

// podFlags are the flags of commands that open a sandbox, as far as they are for
// clusters only.
type podFlags struct {
	// Pod and Container name a pod that exists, to work in.
	Pod, Container  string
	Template        string // a file
	RuntimeClass    string
	AgentImage      string
	PullPolicy      string
	PullSecrets     []string
	ServiceAccount  string
	NodeSelector    []string
	WaitForNode     string
	StartTimeout    string
	NetworkEnforced bool
}

func (f *podFlags) register(set *pflag.FlagSet) {
	const only = onKubernetes
	set.StringVar(&f.Pod, "pod", "", only+"work in this `POD`, which runs and is left as it is")
	set.StringVar(&f.Container, "pod-container", "", only+"with --pod: the `CONTAINER` of it, where it has several")
	set.StringVar(&f.Template, "pod-template", "", only+"lay the pod template of this `FILE`, YAML or JSON, over the safe default")
	set.StringVar(&f.RuntimeClass, "runtime-class", "", only+"run the pod by this RuntimeClass `NAME`, such as gvisor")
	set.StringVar(&f.AgentImage, "agent-image", "", only+"`IMAGE` that brings the agent into the pod (default: this command sends it)")
	set.StringVar(&f.PullPolicy, "pull-policy", "", only+"when nodes pull images: `POLICY` is Always, IfNotPresent or Never (default: Always for :latest, else IfNotPresent)")
	set.StringArrayVar(&f.PullSecrets, "pull-secret", nil, only+"pull images with the registry credentials of this `SECRET` (repeatable)")
	set.StringVar(&f.ServiceAccount, "service-account", "", only+"service `ACCOUNT` of the pod; its token stays outside (default: the namespace's)")
	set.StringArrayVar(&f.NodeSelector, "node-selector", nil, only+"run on nodes with this label `NAME=VALUE` (repeatable)")
	set.StringVar(&f.WaitForNode, "wait-for-node", "", only+"how long to wait for a node with room, as an autoscaler brings one, such as 5m (default: not at all)")
	set.StringVar(&f.StartTimeout, "start-timeout", "", only+"how long a pod may take to start, mostly to pull its image (default 10m)")
	set.BoolVar(&f.NetworkEnforced, "network-policy-enforced", false, only+"take it for shown that the cluster enforces network policies, as doctor can find out")
}

// ofNew is the flags that were given and are for pods that are made, in the order of
// errors.
func (f *podFlags) ofNew() []string {
	return named([]given{
		{"pod-template", f.Template != ""}, {"runtime-class", f.RuntimeClass != ""}, {"agent-image", f.AgentImage != ""},
		{"pull-policy", f.PullPolicy != ""}, {"pull-secret", len(f.PullSecrets) > 0}, {"service-account", f.ServiceAccount != ""},
		{"node-selector", len(f.NodeSelector) > 0}, {"wait-for-node", f.WaitForNode != ""}, {"start-timeout", f.StartTimeout != ""},
		{"network-policy-enforced", f.NetworkEnforced},
	})
}

// given is all the flags that were given, in the order of errors.
func (f *podFlags) given() []string {
	return append(named([]given{{"pod", f.Pod != ""}, {"pod-container", f.Container != ""}}), f.ofNew()...)
}

// check says which flags make no sense together, before a cluster is asked anything.
// kept tells that the sandbox is to stay.
func (f *podFlags) check(imageName string, kept bool) error {
	switch made := f.ofNew(); {
	case f.Pod == "" && f.Container != "":
		return errors.New("--pod-container needs --pod: a container is looked for in a pod that exists")
	case f.Pod == "":
		return nil
	case imageName != "":
		return errors.New("--pod and --image exclude each other: a pod that exists has its image already; leave one of them out")
	case len(made) > 0:
		return fmt.Errorf("--pod and --%s exclude each other: it is for pods that are made; leave one of them out", made[0])
	case kept:
		return errors.New("--pod cannot be kept: the pod stays by itself, and what runs in it by this command ends with this command; use run --pod without --keep")
	}
	return nil
}

// cluster returns the backend of a cluster.
func (p *place) cluster() (*kubernetes.Backend, error) {
	o, err := p.clusterOptions()
	if err != nil {
		return nil, err
	}
	quiet()
	return kubernetes.New(o)
}

// quiet keeps the client's library from writing to standard error, which is not its own:
// what fails comes back as an error.
var quiet = sync.OnceFunc(func() { klog.SetLogger(logr.Discard()) })

// clusterOptions turns the flags into a cluster's options.
func (p *place) clusterOptions() (kubernetes.Options, error) {
	f := &p.Pod
	o := kubernetes.Options{
		Pod: f.Pod, Container: f.Container, RuntimeClass: f.RuntimeClass, AgentImage: f.AgentImage,
		PullSecrets: f.PullSecrets, ServiceAccount: f.ServiceAccount, NetworkPolicyEnforced: f.NetworkEnforced,
	}
	var err error
	if o.Options, err = p.Cluster.options(); err != nil {
		return o, err
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
	if o.StartTimeout, err = waitFlag("start-timeout", f.StartTimeout); err != nil {
		return o, err
	}
	if f.Template != "" {
		if o.Template, err = readPodTemplate(f.Template); err != nil {
			return o, fmt.Errorf("--pod-template: %w", err)
		}
	}
	return o, nil
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

// readPodTemplate reads one from a file.
func readPodTemplate(path string) (*corev1.PodTemplateSpec, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	t, err := podspec.ParseTemplate(text)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return t, nil
}

// pullPolicy reads one in capitals or not.
func pullPolicy(text string) (corev1.PullPolicy, error) {
	all := []corev1.PullPolicy{corev1.PullAlways, corev1.PullIfNotPresent, corev1.PullNever}
	i := slices.IndexFunc(all, func(p corev1.PullPolicy) bool { return strings.EqualFold(string(p), text) })
	switch {
	case text == "":
		return "", nil
	case i < 0:
		return "", fmt.Errorf("--pull-policy %q: use Always, IfNotPresent or Never", text)
	}
	return all[i], nil
}

// checkCluster refuses flags of a cluster where there is none.
func (p *place) checkCluster() error {
	if given := p.Cluster.given(); len(given) > 0 && !p.onCluster() {
		return fmt.Errorf("--%s is for clusters, and the backend is %s: add --backend kubernetes", given[0], p.Backend)
	}
	return nil
}

// again is the flags with which another command looks at the same place.
func (p *place) again() string {
	if p.Backend == localName {
		return ""
	}
	flags := " --backend " + p.Backend
	for _, f := range []struct{ name, value string }{
		{"kubeconfig", p.Cluster.Kubeconfig}, {"kube-context", p.Cluster.Context}, {"namespace", p.Cluster.Namespace},
	} {
		if f.value != "" {
			flags += " --" + f.name + " " + f.value
		}
	}
	return flags
}
