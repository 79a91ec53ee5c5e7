package access

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/clientcmd/api"
	"k8s.io/client-go/util/homedir"
)

// found is where a cluster is.
type found struct {
	config    *rest.Config
	namespace string
	source    string
}

// locate looks in the places that Options names, in their order.
func locate(o Options) (*found, error) {
	if o.Config != nil {
		return &found{config: rest.CopyConfig(o.Config), namespace: "default", source: "the configuration that it was given"}, nil
	}
	files := kubeconfigs(o)
	merged, there, err := load(files)
	if err != nil {
		return nil, err
	}
	named := o.Kubeconfig != "" || os.Getenv(clientcmd.RecommendedConfigPathEnvVar) != ""
	switch {
	case len(there) > 0:
		return fromContext(merged, o, strings.Join(there, ", "))
	case named:
		return nil, unsupported(fs.ErrNotExist, fmt.Sprintf("there is no kubeconfig at %s", strings.Join(files, ", ")),
			"correct the path (the option, or KUBECONFIG), or have the cluster's administrator give you the file")
	case o.Context != "":
		return nil, unsupported(fs.ErrNotExist, fmt.Sprintf("there is no kubeconfig, and so no context %q", o.Context), "name a kubeconfig with KUBECONFIG")
	}
	return inCluster()
}

// kubeconfigs are the files to read, of which the first that says something wins.
func kubeconfigs(o Options) []string {
	if o.Kubeconfig != "" {
		return []string{o.Kubeconfig}
	}
	if list := os.Getenv(clientcmd.RecommendedConfigPathEnvVar); list != "" {
		files := slices.DeleteFunc(filepath.SplitList(list), func(f string) bool { return f == "" })
		return slices.Compact(files)
	}
	if home := homedir.HomeDir(); home != "" {
		return []string{filepath.Join(home, clientcmd.RecommendedHomeDir, clientcmd.RecommendedFileName)}
	}
	return nil
}

// load reads and merges those of files that are there, and names these.
func load(files []string) (merged *api.Config, there []string, err error) {
	for _, file := range files {
		_, err := clientcmd.LoadFromFile(file)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			continue
		case errors.Is(err, fs.ErrPermission):
			return nil, nil, unsupported(err, fmt.Sprintf("the kubeconfig %s may not be read", file), "give this user the right to read it, or name another one with KUBECONFIG")
		case err != nil:
			return nil, nil, invalid(err, fmt.Sprintf("the kubeconfig %s cannot be read: %v", file, err), "correct it, or name another one with KUBECONFIG")
		}
		there = append(there, file)
	}
	if len(there) == 0 {
		return nil, nil, nil
	}
	rules := clientcmd.ClientConfigLoadingRules{Precedence: there, Warner: func(error) {}}
	merged, err = rules.Load()
	if err != nil {
		return nil, nil, invalid(err, fmt.Sprintf("the kubeconfigs %s cannot be read together: %v", strings.Join(there, ", "), err), "correct them, or name one with KUBECONFIG")
	}
	return merged, there, nil
}

// fromContext is the cluster of a context.
func fromContext(merged *api.Config, o Options, source string) (*found, error) {
	contexts := slices.Sorted(maps.Keys(merged.Contexts))
	name := or(o.Context, merged.CurrentContext)
	c, ok := merged.Contexts[name]
	switch {
	case len(contexts) == 0:
		return nil, unsupported(nil, fmt.Sprintf("the kubeconfig %s has no contexts", source), "name another one with KUBECONFIG, or log in to the cluster, which writes one")
	case name == "":
		return nil, invalid(nil, fmt.Sprintf("the kubeconfig %s has no current context", source),
			"name one of its contexts: "+strings.Join(contexts, ", ")+"; or choose it with kubectl config use-context")
	case !ok:
		return nil, invalid(nil, fmt.Sprintf("the kubeconfig %s has no context %q", source, name), "name one of its contexts: "+strings.Join(contexts, ", "))
	}
	if cluster, ok := merged.Clusters[c.Cluster]; !ok || cluster.Server == "" {
		return nil, invalid(nil, fmt.Sprintf("the context %q of %s names the cluster %q, which has no server there", name, source, c.Cluster), "correct the kubeconfig, or name another context")
	}
	if _, ok := merged.AuthInfos[c.AuthInfo]; c.AuthInfo != "" && !ok {
		return nil, invalid(nil, fmt.Sprintf("the context %q of %s names the user %q, who is not there", name, source, c.AuthInfo), "correct the kubeconfig, or name another context")
	}
	config, err := clientcmd.NewNonInteractiveClientConfig(*merged, name, &clientcmd.ConfigOverrides{}, nil).ClientConfig()
	if err != nil {
		return nil, invalid(err, fmt.Sprintf("the context %q of %s cannot be used: %v", name, source, err), "correct the kubeconfig, or name another context")
	}
	if err := findPlugin(config, name); err != nil {
		return nil, err
	}
	return &found{config: config, namespace: or(c.Namespace, "default"), source: fmt.Sprintf("the context %q of %s", name, source)}, nil
}

// findPlugin looks for the program that a context gets its credentials from, which would
// else be missed only when the cluster is first asked.
func findPlugin(config *rest.Config, context string) error {
	plugin := config.ExecProvider
	if plugin == nil {
		return nil
	}
	if _, err := exec.LookPath(plugin.Command); err != nil {
		fix := "install it, or name another context"
		if plugin.InstallHint != "" {
			fix += ". " + strings.TrimSpace(plugin.InstallHint)
		}
		return unsupported(err, fmt.Sprintf("the context %q gets its credentials from the program %q, which cannot be run: %v", context, plugin.Command, err), fix)
	}
	// What this process reads from stdin may be a program's input.
	plugin.StdinUnavailable, plugin.StdinUnavailableMessage = true, "llmsandbox lets no program of a kubeconfig ask questions: log in with it before"
	return nil
}

// accountDir is where a pod finds its service account.
const accountDir = "/var/run/secrets/kubernetes.io/serviceaccount"

// inCluster is the cluster that this process runs in.
func inCluster() (*found, error) {
	config, err := rest.InClusterConfig()
	if errors.Is(err, rest.ErrNotInCluster) || errors.Is(err, fs.ErrNotExist) {
		why := "there is no kubeconfig, and this process runs in no pod with a service account"
		return nil, unsupported(err, why, "name a kubeconfig with KUBECONFIG, or put one at ~/.kube/config; in a pod, set automountServiceAccountToken: true")
	}
	if err != nil {
		return nil, unsupported(err, fmt.Sprintf("the service account of this pod cannot be used: %v", err), "look at what is mounted at "+accountDir)
	}
	if config.CAFile == "" { // client-go would trust every public authority in its place
		return nil, unsupported(nil, "the cluster's certificate authority at "+accountDir+"/ca.crt cannot be read", "look at what is mounted there")
	}
	f := &found{config: config, namespace: "default", source: "the service account of this pod"}
	text, err := os.ReadFile(filepath.Join(accountDir, "namespace"))
	switch {
	case errors.Is(err, fs.ErrNotExist): // older clusters do not have it
	case err != nil:
		return nil, unsupported(err, fmt.Sprintf("the namespace of this pod cannot be read: %v", err), "name the namespace")
	case strings.TrimSpace(string(text)) != "":
		f.namespace = strings.TrimSpace(string(text))
	}
	return f, nil
}
