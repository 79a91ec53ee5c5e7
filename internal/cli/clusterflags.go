package cli

import (
	"fmt"

	"github.com/spf13/pflag"
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
