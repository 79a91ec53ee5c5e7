package cli

import (
	"errors"
	"fmt"

	"github.com/spf13/pflag"
)

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
	set.BoolVar(&f.NetworkEnforced, "network-policy-enforced", false, only+"take it for shown that the cluster enforces network policies, whatever doctor saw and kept")
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
