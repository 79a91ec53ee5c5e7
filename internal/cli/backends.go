package cli

import (
	"cmp"
	"fmt"
	"os"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/llmsandbox/llmsandbox/backend"
	"github.com/llmsandbox/llmsandbox/backend/docker"
	"github.com/llmsandbox/llmsandbox/backend/podman"
)

// The names of the --backend flag. Micromamba is no engine of its own: its sandboxes are
// Docker's, with every program started in an environment.
const (
	localName      = "local"
	micromambaName = "micromamba"
)

var backendNames = []string{localName, docker.Name, podman.Name, micromambaName, kubernetesName}

// backendVariable sets the default of --backend.
const backendVariable = "LLMSANDBOX_BACKEND"

// A place is where a command finds or makes its sandboxes. It travels to a supervisor as
// JSON.
type place struct {
	Backend string
	Engine  engineFlags
	Cluster clusterFlags
	Pod     podFlags
}

// register adds to a command the flags that say where: --backend and a cluster's. what
// says what the backend is for.
func (p *place) register(set *pflag.FlagSet, what string) {
	set.StringVar(&p.Backend, "backend", cmp.Or(os.Getenv(backendVariable), localName),
		what+": "+strings.Join(backendNames, ", ")+" (environment variable "+backendVariable+")")
	p.Cluster.register(set)
}

// open returns the backend, of which nothing is asked yet.
func (p *place) open() (backend.Backend, error) {
	if err := p.checkCluster(); err != nil {
		return nil, err
	}
	switch p.Backend {
	case localName:
		return localBackend()
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

// unknownBackend says which names there are, and which of them may be meant.
func unknownBackend(name string) error {
	menu := &cobra.Command{SuggestionsMinimumDistance: 3}
	for _, known := range backendNames {
		menu.AddCommand(&cobra.Command{Use: known, Run: func(*cobra.Command, []string) {}})
	}
	meant := ""
	if like := menu.SuggestionsFor(name); name != "" && len(like) > 0 {
		meant = " (did you mean " + like[0] + "?)"
	}
	last := len(backendNames) - 1
	return fmt.Errorf("backend %q is not known%s: use %s or %s", name, meant, strings.Join(backendNames[:last], ", "), backendNames[last])
}

// A placedError is an error that hints are given for by its backend.
type placedError struct {
	error
	place *place
}

func (e *placedError) Unwrap() error { return e.error }

// placed notes on an error where it happened.
func placed(p *place, err error) error {
	if err == nil {
		return nil
	}
	return &placedError{err, p}
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
