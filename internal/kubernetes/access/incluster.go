package access

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"k8s.io/client-go/rest"
)

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
