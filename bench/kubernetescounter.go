package main

import (
	"errors"
	"fmt"
	"maps"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/clientcmd/api"

	"github.com/llmsandbox/llmsandbox/backend/kubernetes"
	"github.com/llmsandbox/llmsandbox/internal/kubernetes/access"
)

// A counter is a proxy on this machine's loopback before an API server. It counts the
// requests by what they ask for, streams included, which no hook of the client tells of.
// While it is open, every program of this machine can use it with the cluster's
// credentials: it is for clusters that are there to be measured.
type counter struct {
	options kubernetes.Options // of a backend that is counted
	dir     string
	server  *http.Server
	ended   chan error

	mu   sync.Mutex
	seen map[string]int
}

func newCounter(kubeconfig string) (*counter, error) {
	cluster, err := access.Find(access.Options{Kubeconfig: kubeconfig})
	if err != nil {
		return nil, err
	}
	to, err := url.Parse(cluster.Config.Host)
	if err != nil {
		return nil, err
	}
	config := rest.CopyConfig(cluster.Config)
	config.NextProtos = []string{"http/1.1"} // streams are upgrades, which HTTP/2 has not
	transport, err := rest.TransportFor(config)
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp("", "llmsandbox-bench-")
	if err != nil {
		return nil, err
	}
	c := &counter{dir: dir, ended: make(chan error, 1), seen: map[string]int{}}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	c.options = kubernetes.Options{Kubeconfig: filepath.Join(dir, "kubeconfig"), Namespace: cluster.Namespace}
	file := api.Config{
		Clusters:       map[string]*api.Cluster{"bench": {Server: "http://" + l.Addr().String()}},
		Contexts:       map[string]*api.Context{"bench": {Cluster: "bench"}},
		CurrentContext: "bench",
	}
	if err := clientcmd.WriteToFile(file, c.options.Kubeconfig); err != nil {
		return nil, errors.Join(err, l.Close(), os.RemoveAll(dir))
	}
	proxy := &httputil.ReverseProxy{
		Transport:     transport,
		FlushInterval: -1, // a watch's events are passed on as they come
		Rewrite: func(r *httputil.ProxyRequest) {
			c.count(r.In)
			r.SetURL(to)
		},
	}
	c.server = &http.Server{Handler: proxy}
	go func() { c.ended <- c.server.Serve(l) }()
	return c, nil
}

func (c *counter) close() error {
	err := c.server.Close()
	if ended := <-c.ended; !errors.Is(ended, http.ErrServerClosed) {
		err = errors.Join(err, ended)
	}
	return errors.Join(err, os.RemoveAll(c.dir))
}

// count notes a request by its method, the kind of resource, and whether it watches.
func (c *counter) count(r *http.Request) {
	parts := strings.Split(strings.Trim(r.URL.Path, "/"), "/")
	what := r.URL.Path
	if i := slices.Index(parts, "namespaces"); i >= 0 && len(parts) > i+2 {
		what = parts[i+2]
		if len(parts) > i+4 {
			what += "/" + parts[i+4]
		}
	}
	switch {
	case r.URL.Query().Get("watch") != "":
		what = "watch " + what
	case r.Header.Get("Upgrade") != "":
		what = "stream " + what
	default:
		what = fmt.Sprintf("%s %s", r.Method, what)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.seen[what]++
}

func (c *counter) counts() map[string]int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return maps.Clone(c.seen)
}
