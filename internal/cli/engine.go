package cli

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"github.com/spf13/pflag"

	"github.com/llmsandbox/llmsandbox/backend/docker"
	"github.com/llmsandbox/llmsandbox/backend/engine"
	"github.com/llmsandbox/llmsandbox/backend/engine/image"
	"github.com/llmsandbox/llmsandbox/backend/engine/micromamba"
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
	const only = "on container engines: "
	set.StringArrayVar(&f.RuntimeOptions, "runtime-option", nil, only+"an engine's option `KEY=VALUE`, laid over the safe defaults (repeatable; llmsandbox help runtime-options lists the keys)")
	set.StringVar(&f.Container, "container", "", only+"work in the container of this `ID` or name, which is started when it is stopped, and left as it is")
	set.StringVar(&f.Dockerfile, "dockerfile", "", only+"build the root filesystem from this `FILE`")
	set.StringArrayVar(&f.BuildArgs, "build-arg", nil, only+"argument `NAME=VALUE` of the build (repeatable)")
	set.StringVar(&f.BuildContext, "build-context", "", only+"`FOLDER` that the build copies from (default: the Dockerfile's)")
	set.BoolVar(&f.KeepImage, "keep-image", false, only+"keep an image that was pulled, loaded or built for this sandbox")
	set.StringVar(&f.MicromambaEnv, "micromamba-env", "", only+"start every program in this Micromamba `ENVIRONMENT` of the image (default with --backend micromamba: base)")
	set.StringArrayVar(&f.MicromambaPackages, "micromamba-package", nil, only+"install the conda `PACKAGE`, such as numpy=2.1, into the Micromamba environment (repeatable)")
	set.StringArrayVar(&f.MicromambaChannels, "micromamba-channel", nil, only+"take Micromamba's packages from this `CHANNEL` (repeatable, best first; default: conda-forge)")
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
		o.Build = &image.Build{Dockerfile: f.Dockerfile, Context: f.BuildContext, Args: args}
		if o.Build.Context == "" {
			o.Build.Context = filepath.Dir(f.Dockerfile)
		}
	}
	env := f.MicromambaEnv
	if env == "" && (p.Backend == micromambaName || len(f.MicromambaPackages) > 0) {
		env = "base"
	}
	if env == "" {
		return o, nil
	}
	return o, micromamba.Apply(&o, micromamba.Options{Env: env, Packages: f.MicromambaPackages, Channels: f.MicromambaChannels})
}

// engine returns the backend of a container engine.
func (p *place) engine() (*engine.Backend, error) {
	o, err := p.options()
	if err != nil {
		return nil, err
	}
	if p.Backend == podman.Name {
		return podman.New(podman.Options{Options: o})
	}
	return docker.New(docker.Options{Options: o})
}
