// Package access finds out which cluster is to be used, where it is and as which user, and turns
// what a cluster answers into errors that say what to do. It also knows which
// permissions the Kubernetes backend needs, and asks which of them are missing.
package access

import (
	"cmp"
	"context"
	"fmt"
	"runtime"
	"runtime/debug"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/flowcontrol"

	"github.com/llmsandbox/llmsandbox/backend"
)

const (
	// DefaultQPS is how many requests a second are sent on average, and DefaultBurst how
	// many at once. client-go's own 5 and 10 would make many sandboxes that are asked for
	// together wait for each other; the API server has a fairness of its own.
	DefaultQPS   = 50
	DefaultBurst = 200

	module = "github.com/llmsandbox/llmsandbox"
)

// Options say which cluster is used, and as which user. The zero value is what kubectl would use.
type Options struct {
	// Kubeconfig is a kubeconfig file. Empty means the files of KUBECONFIG, or
	// ~/.kube/config, or, where that is not there, the service account of the pod that
	// this process runs in.
	Kubeconfig string
	// Context is a context of the kubeconfig; empty means the current one.
	Context string
	// Config, when set, is used in place of Kubeconfig and Context, and not changed.
	Config *rest.Config
	// Namespace is where sandboxes are made. Empty means the context's, or the pod's own,
	// or "default".
	Namespace string
	// QPS and Burst limit the requests to the API server; zero means DefaultQPS and
	// DefaultBurst.
	QPS   float32
	Burst int
}

// A Cluster is a cluster that can be asked. It is safe for concurrent use.
type Cluster struct {
	// Config connects to the cluster. It speaks JSON, which every API understands.
	Config *rest.Config
	// Client speaks protobuf, which costs less on both ends. It and what else is made from
	// Config share the limits of Options' QPS and Burst.
	Client kubernetes.Interface
	// Namespace is where sandboxes are made.
	Namespace string
	// Server is the API server's address.
	Server string
	// Source is where the cluster was found, for people.
	Source string
}

// Find finds the cluster. Nothing is asked of it. It fails with an *Error that wraps
// backend.ErrInvalid when what was asked for makes no sense, and backend.ErrUnsupported
// when there is no cluster that could be used.
func Find(o Options) (*Cluster, error) {
	if o.QPS < 0 || o.Burst < 0 {
		return nil, invalid(nil, fmt.Sprintf("the limit of requests (QPS %g, burst %d) cannot be negative", o.QPS, o.Burst), "leave it out, or give numbers above 0")
	}
	found, err := locate(o)
	if err != nil {
		return nil, err
	}
	namespace := cmp.Or(o.Namespace, found.namespace)
	if faults := validation.IsDNS1123Label(namespace); len(faults) > 0 {
		return nil, invalid(nil, fmt.Sprintf("%q is not the name of a namespace: %s", namespace, strings.Join(faults, "; ")), "kubectl get namespaces lists those there are")
	}
	config := found.config
	config.UserAgent = userAgent()
	config.QPS, config.Burst = or(o.QPS, DefaultQPS), or(o.Burst, DefaultBurst)
	config.RateLimiter = limiter{flowcontrol.NewTokenBucketRateLimiter(config.QPS, config.Burst)}
	// What an API server warns of would be written to stderr, which is not ours.
	config.WarningHandlerWithContext = rest.NoWarnings{}
	client, err := newClient(config)
	if err != nil {
		return nil, invalid(err, fmt.Sprintf("%s cannot be used: %v", found.source, err), "correct the certificates and credentials that it names")
	}
	return &Cluster{Config: config, Client: client, Namespace: namespace, Server: config.Host, Source: found.source}, nil
}

func newClient(config *rest.Config) (kubernetes.Interface, error) {
	quick := rest.CopyConfig(config)
	quick.ContentType = "application/vnd.kubernetes.protobuf"
	quick.AcceptContentTypes = quick.ContentType + ",application/json"
	return kubernetes.NewForConfig(quick)
}

// userAgent is what the API server's audit log knows the requests by.
func userAgent() string {
	version := "dev"
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, m := range append(info.Deps, &info.Main) {
			if m.Path == module && m.Version != "" && m.Version != "(devel)" {
				version = m.Version
			}
		}
	}
	return fmt.Sprintf("llmsandbox/%s (%s/%s)", version, runtime.GOOS, runtime.GOARCH)
}

func or[T comparable](v, otherwise T) T {
	var zero T
	if v == zero {
		return otherwise
	}
	return v
}

func invalid(cause error, why, fix string) *Error {
	return &Error{Why: why, Fix: fix, Kind: backend.ErrInvalid, Cause: cause}
}

func unsupported(cause error, why, fix string) *Error {
	return &Error{Why: why, Fix: fix, Kind: backend.ErrUnsupported, Cause: cause}
}

// A limiter is one bucket for all clients of a config, not one for each.
type limiter struct{ flowcontrol.RateLimiter }

// Wait refuses a request at once whose turn would come after its deadline, with the
// context's own error: the bucket's is none that errors.Is knows.
func (l limiter) Wait(ctx context.Context) error {
	err := l.RateLimiter.Wait(ctx)
	if _, timed := ctx.Deadline(); err == nil || ctx.Err() != nil || !timed {
		return err
	}
	return fmt.Errorf("%w: this client sends no more than its QPS and Burst, and other requests come first", context.DeadlineExceeded)
}
