package cli

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/llmsandbox/llmsandbox/backend/docker"
	"github.com/llmsandbox/llmsandbox/backend/engine"
	"github.com/llmsandbox/llmsandbox/backend/engine/settings"
	"github.com/llmsandbox/llmsandbox/backend/podman"
)

// engineFlags are the flags of commands that open a sandbox, as far as they are for
// container engines only.
type engineFlags struct {
	RuntimeOptions []string
	Container      string
	Dockerfile     string
	BuildArgs      []string
	BuildContext   string
	KeepImage      bool
	MicromambaEnv  string
	// MicromambaPackages are installed into the environment, from MicromambaChannels.
	MicromambaPackages, MicromambaChannels []string
}

func (f *engineFlags) register(set *pflag.FlagSet) {
	set.StringArrayVar(&f.RuntimeOptions, "runtime-option", nil, "set an engine option: `KEY=VALUE`; see llmsandbox help runtime-options (repeatable)")
	set.StringVar(&f.Container, "container", "", "work in the existing container with this `ID` or name, and leave it in place")
	set.StringVar(&f.Dockerfile, "dockerfile", "", "build the root filesystem from this `DOCKERFILE`")
	set.StringArrayVar(&f.BuildArgs, "build-arg", nil, "set a build argument: `NAME=VALUE` (repeatable)")
	set.StringVar(&f.BuildContext, "build-context", "", "build context: `DIR` (default: directory of the Dockerfile)")
	set.BoolVar(&f.KeepImage, "keep-image", false, "keep the image that was pulled, loaded or built for this sandbox")
	set.StringVar(&f.MicromambaEnv, "micromamba-env", "", "start programs in this Micromamba `ENVIRONMENT` (default with --backend micromamba: base)")
	set.StringArrayVar(&f.MicromambaPackages, "micromamba-package", nil, "install a conda `PACKAGE`, such as numpy=2.1, into the environment (repeatable)")
	set.StringArrayVar(&f.MicromambaChannels, "micromamba-channel", nil, "get conda packages from this `CHANNEL`, best first (repeatable; default: conda-forge)")
}

// given is the flags that were given, by name, in the order of errors.
func (f *engineFlags) given() []string {
	return named([]given{
		{"runtime-option", len(f.RuntimeOptions) > 0}, {"container", f.Container != ""}, {"dockerfile", f.Dockerfile != ""},
		{"build-arg", len(f.BuildArgs) > 0}, {"build-context", f.BuildContext != ""}, {"keep-image", f.KeepImage},
		{"micromamba-env", f.MicromambaEnv != ""}, {"micromamba-package", len(f.MicromambaPackages) > 0},
		{"micromamba-channel", len(f.MicromambaChannels) > 0},
	})
}

// check says which flags make no sense together or on the backend, before anything is
// started. kept tells that the sandbox is to stay.
func (p *place) check(imageName string, kept bool) error {
	f := &p.Engine
	switch given := f.given(); {
	case !slices.Contains(backendNames, p.Backend):
		return unknownBackend(p.Backend)
	case p.onCluster() && f.Container != "":
		return errors.New("--container is for container engines, and the backend is kubernetes: use --pod, and --pod-container if the pod has several")
	case p.onCluster() && f.Dockerfile != "":
		return errors.New("--dockerfile is for container engines, and the backend is kubernetes: build the image where the cluster's nodes can pull it from, and name it with --image")
	case !p.onEngine() && len(given) > 0:
		return fmt.Errorf("--%s is for container engines, and the backend is %s: add --backend docker or --backend podman", given[0], p.Backend)
	case !p.onCluster() && len(p.Pod.given()) > 0:
		return fmt.Errorf("--%s is for clusters, and the backend is %s: add --backend kubernetes", p.Pod.given()[0], p.Backend)
	case imageName != "" && f.Dockerfile != "":
		return errors.New("--image and --dockerfile exclude each other: an image is either named or built; leave one of them out")
	case f.Container != "" && f.Dockerfile != "":
		return errors.New("--container and --dockerfile exclude each other: a container that exists has its image already; leave one of them out")
	case f.Container != "" && imageName != "":
		return errors.New("--container and --image exclude each other: a container that exists has its image already; leave one of them out")
	case f.Container != "" && len(f.RuntimeOptions) > 0:
		return errors.New("--container and --runtime-option exclude each other: runtime options are set when a container is made; leave one of them out")
	case f.Container != "" && kept:
		return errors.New("--container cannot be kept: the container stays by itself, and what runs in it by this command ends with this command; use run --container without --keep")
	case len(f.MicromambaChannels) > 0 && len(f.MicromambaPackages) == 0 && (p.Backend != micromambaName || imageName != "" || f.Dockerfile != ""):
		return errors.New("--micromamba-channel needs --micromamba-package: there is nothing to install from it")
	case f.Container != "" && len(f.MicromambaPackages) > 0:
		return errors.New("--container and --micromamba-package exclude each other: packages are installed when an image is prepared; leave one of them out")
	case f.Dockerfile == "" && (len(f.BuildArgs) > 0 || f.BuildContext != ""):
		return errors.New("--build-arg and --build-context need --dockerfile: there is nothing else to build")
	case f.KeepImage && f.Dockerfile == "" && imageName == "":
		return errors.New("--keep-image needs --image or --dockerfile: a language's default image is always kept")
	case f.Dockerfile != "":
		if _, err := os.Stat(f.Dockerfile); err != nil {
			return fmt.Errorf("--dockerfile: %w", err)
		}
	}
	return p.Pod.check(imageName, kept)
}

// options turns the flags into an engine's options.
func (p *place) options() (engine.Options, error) {
	f := &p.Engine
	o := engine.Options{Container: f.Container, KeepImage: f.KeepImage}
	for _, option := range f.RuntimeOptions {
		key, value, err := pair("runtime-option", option)
		if err != nil {
			return o, err
		}
		if err := o.Settings.Set(key, value); err != nil {
			return o, err
		}
	}
	if err := o.Settings.Validate(); err != nil {
		return o, err
	}
	if f.Dockerfile != "" {
		args, err := pairs("build-arg", f.BuildArgs)
		if err != nil {
			return o, err
		}
		o.Build = &engine.Build{Dockerfile: f.Dockerfile, Context: f.BuildContext, Args: args}
		o.Build.Context = cmp.Or(o.Build.Context, filepath.Dir(f.Dockerfile))
	}
	env := f.MicromambaEnv
	if env == "" && (p.Backend == micromambaName || len(f.MicromambaPackages) > 0) {
		env = "base"
	}
	if env != "" {
		o.Micromamba = &engine.Micromamba{Env: env, Packages: f.MicromambaPackages, Channels: f.MicromambaChannels}
	}
	return o, nil
}

// engine returns the backend of a container engine.
func (p *place) engine() (*engine.Backend, error) {
	o, err := p.options()
	if err != nil {
		return nil, err
	}
	if p.Backend == podman.Name {
		return podman.New(&podman.Options{Options: o})
	}
	return docker.New(&docker.Options{Options: o})
}

// clusterFlags say where a cluster is. Every command that finds sandboxes has them.
type clusterFlags struct {
	Kubeconfig string
	Context    string
	Namespace  string
}

func (f *clusterFlags) register(set *pflag.FlagSet) {
	set.StringVar(&f.Kubeconfig, "kubeconfig", "", "connect with this kubeconfig `FILE` (default: KUBECONFIG, ~/.kube/config or in-cluster)")
	set.StringVar(&f.Context, "kube-context", "", "`CONTEXT` of the kubeconfig (default: its current context)")
	set.StringVar(&f.Namespace, "namespace", "", "`NAMESPACE` of the pods (default: the namespace of the context)")
}

// given is the flags that were given, by name, in the order of errors.
func (f *clusterFlags) given() []string {
	return named([]given{{"kubeconfig", f.Kubeconfig != ""}, {"kube-context", f.Context != ""}, {"namespace", f.Namespace != ""}})
}

// checkCluster refuses flags of a cluster where there is none.
func (p *place) checkCluster() error {
	given := append(p.Cluster.given(), named([]given{{"storage-class", p.Claims.StorageClass != ""}, {"volume-access", p.Claims.Access != ""}})...)
	if len(given) > 0 && !p.onCluster() {
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

// claimFlags are the flags of commands that create volumes, as far as they are for clusters only.
type claimFlags struct {
	StorageClass string
	Access       string
}

func (f *claimFlags) register(set *pflag.FlagSet) {
	set.StringVar(&f.StorageClass, "storage-class", "", "`NAME` of the StorageClass of new volumes (default: the cluster's)")
	set.StringVar(&f.Access, "volume-access", "", "access `MODE` of new volumes: ReadWriteMany for several nodes at once (default ReadWriteOnce)")
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
	set.StringVar(&f.Pod, "pod", "", "work in the existing `POD`, and leave it in place")
	set.StringVar(&f.Container, "pod-container", "", "with --pod, use this `CONTAINER` of the pod")
	set.StringVar(&f.Template, "pod-template", "", "merge the pod template in `FILE`, YAML or JSON, into the safe default")
	set.StringVar(&f.RuntimeClass, "runtime-class", "", "`NAME` of the pod's RuntimeClass, such as gvisor")
	set.StringVar(&f.AgentImage, "agent-image", "", "get the agent from this `IMAGE` (default: send it with each pod)")
	set.StringVar(&f.PullPolicy, "pull-policy", "", "image pull `POLICY`: Always, IfNotPresent or Never (default: Kubernetes' own)")
	set.StringArrayVar(&f.PullSecrets, "pull-secret", nil, "pull images with this image pull `SECRET` (repeatable)")
	set.StringVar(&f.ServiceAccount, "service-account", "", "service `ACCOUNT` of the pod, without its token (default: the namespace's)")
	set.StringArrayVar(&f.NodeSelector, "node-selector", nil, "run on nodes with this label: `NAME=VALUE` (repeatable)")
	set.StringVar(&f.WaitForNode, "wait-for-node", "", "wait this `DURATION` for a node with room, such as 5m (default: do not wait)")
	set.StringVar(&f.StartTimeout, "start-timeout", "", "time limit for starting a pod and pulling its image: `DURATION` (default 10m)")
	set.BoolVar(&f.NetworkEnforced, "network-policy-enforced", false, "assume that the cluster enforces NetworkPolicies (skips the result of doctor)")
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

const runtimeOptionsTopic = "runtime-options"

// newRuntimeOptionsTopic is no command but a page of help: the keys of --runtime-option.
func newRuntimeOptionsTopic() *cobra.Command {
	cmd := &cobra.Command{
		Use:   runtimeOptionsTopic,
		Short: "List the keys of --runtime-option for Docker and Podman",
	}
	cmd.SetHelpFunc(func(cmd *cobra.Command, _ []string) {
		w := newTable(cmd.OutOrStdout())
		fmt.Fprintln(w, `Options of Docker and Podman that change the safe defaults of a sandbox. Whatever they relax
is shown by doctor and by --json --capabilities. For a key with a list or a map, each
--runtime-option adds one item, or several as JSON.

  llmsandbox run --backend docker --runtime-option shm_size=64m \
      --runtime-option ulimits=nofile=1024:2048 app.py`)
		group := ""
		for _, k := range settings.Keys() {
			if k.Group != group {
				group = k.Group
				fmt.Fprintf(w, "\n%s\nKEY\tTYPE\tMEANING\tEXAMPLE\n", group)
			}
			fmt.Fprintf(w, "%s\t%s\t%s\t%s\n", k.Name, k.Type, k.Meaning, k.Example)
		}
		if err := w.Flush(); err != nil {
			cmd.PrintErrln("llmsandbox: print the help:", err)
		}
	})
	return cmd
}
