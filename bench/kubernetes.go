package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/clientcmd/api"

	"github.com/llmsandbox/llmsandbox"
	"github.com/llmsandbox/llmsandbox/backend"
	"github.com/llmsandbox/llmsandbox/backend/kubernetes"
	"github.com/llmsandbox/llmsandbox/internal/kubernetes/access"
)

// A podCluster is a Kubernetes cluster, as kubectl and the library reach it.
type podCluster struct {
	kubectl    []string // up to its sub-command
	kubeconfig string   // empty: the one that kubectl uses by itself
	backend    backend.Backend
	image      string // of kubectl's pods and of the sandboxes alike
}

// newCluster connects to a cluster, and checks that all is there that will be measured. A
// cluster is only measured when it is named: the one that kubectl happens to use may be
// somebody's.
func newCluster(ctx context.Context, o options) (*podCluster, error) {
	if o.kubeconfig == "" && os.Getenv("KUBECONFIG") == "" {
		return nil, errors.New("no -kubeconfig FILE, and no KUBECONFIG")
	}
	c := &podCluster{kubectl: strings.Fields(o.kubectl), kubeconfig: o.kubeconfig, image: o.image}
	if len(c.kubectl) == 0 {
		return nil, errors.New("-kubectl is empty")
	}
	if o.kubeconfig != "" {
		c.kubectl = append(c.kubectl, "--kubeconfig", o.kubeconfig)
	}
	if _, err := exec.LookPath(c.kubectl[0]); err != nil {
		return nil, err
	}
	b, err := kubernetes.New(&kubernetes.Options{Kubeconfig: o.kubeconfig})
	if err != nil {
		return nil, err
	}
	c.backend = b
	// Which images the nodes have or can pull, only a pod tells.
	sb, err := c.open(ctx, b)
	if err != nil {
		return nil, err
	}
	return c, sb.Close()
}

// run executes kubectl; what it prints goes nowhere.
func (c *podCluster) run(ctx context.Context, args ...string) error {
	argv := slices.Concat(c.kubectl, args)
	cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
	var said strings.Builder
	cmd.Stdout, cmd.Stderr = io.Discard, &said
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("kubectl %s: %w: %s", args[0], err, said.String())
	}
	return nil
}

// ephemeral is a pod of kubectl's own that runs the program and is removed.
func (c *podCluster) ephemeral(ctx context.Context, name string) error {
	return c.run(ctx, "run", name, "--rm", "--stdin", "--quiet", "--restart=Never", "--image-pull-policy=IfNotPresent", "--image="+c.image,
		"--command", "--", "python3", "-c", one)
}

// shell is a pod of kubectl's own, for its other commands to work on.
func (c *podCluster) shell(ctx context.Context) (name string, remove func() error, err error) {
	name = fmt.Sprintf("llmsandbox-bench-%d", os.Getpid())
	remove = func() error {
		return c.run(context.WithoutCancel(ctx), "delete", "pod", name, "--now", "--ignore-not-found", "--wait=false")
	}
	if err := c.run(ctx, "run", name, "--restart=Never", "--image-pull-policy=IfNotPresent", "--image="+c.image,
		"--command", "--", "python3", "-c", "import time; time.sleep(3600)"); err != nil {
		return name, remove, err
	}
	return name, remove, c.run(ctx, "wait", "--for=condition=Ready", "pod/"+name, "--timeout=60s")
}

// open opens a sandbox with the default limits.
func (c *podCluster) open(ctx context.Context, b backend.Backend) (*llmsandbox.Sandbox, error) {
	return c.openWith(ctx, b, llmsandbox.Limits{})
}

func (c *podCluster) openWith(ctx context.Context, b backend.Backend, l llmsandbox.Limits) (*llmsandbox.Sandbox, error) {
	return llmsandbox.Open(ctx, &llmsandbox.Options{Backend: b, Image: c.image, Language: "python", BestEffort: true, Limits: l})
}

// whole is the life of a sandbox with one run in it.
func (c *podCluster) whole(ctx context.Context, b backend.Backend) error {
	sb, err := c.open(ctx, b)
	if err != nil {
		return err
	}
	return errors.Join(ok(sb.Run(ctx, one, nil)), sb.Close())
}

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

// sections are what is measured on a cluster.
func (c *podCluster) sections() []section {
	return []section{
		{"kubernetes: one-shot", c.oneShots},
		{"kubernetes: run in an open sandbox", c.openRuns},
		{"kubernetes: forked runs and kernels", c.forks},
		{"kubernetes: requests", c.requests},
		{"kubernetes: many at once", c.manyAtOnce},
	}
}

func (c *podCluster) oneShots(ctx context.Context, all *env, rounds int) error {
	const ephemeral = "kubectl run --rm"
	turn := 0
	var sb *llmsandbox.Sandbox
	flags := []string{"run", "--backend", "kubernetes", "--image", c.image, "--best-effort", "-l", "python", "-c", one}
	if c.kubeconfig != "" {
		flags = append(flags, "--kubeconfig", c.kubeconfig)
	}
	t, err := measure(ctx, engineRounds(rounds),
		timed(ephemeral, func(ctx context.Context) error {
			turn++
			return c.ephemeral(ctx, fmt.Sprintf("llmsandbox-bench-%d-%d", os.Getpid(), turn))
		}),
		timed("Open+Run", func(ctx context.Context) (err error) {
			if sb, err = c.open(ctx, c.backend); err != nil {
				return err
			}
			return ok(sb.Run(ctx, one, nil))
		}),
		timed("Close", func(context.Context) error { return sb.Close() }),
		program("llmsandbox run -c", append([]string{all.command}, flags...)...),
	)
	if err != nil {
		return err
	}
	t.print()
	aimAtMost("Open+Run as a ratio to "+ephemeral, 1, t.ratio("Open+Run", ephemeral))
	return nil
}

func (c *podCluster) openRuns(ctx context.Context, all *env, rounds int) (err error) {
	sb, err := c.openWith(ctx, c.backend, free)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, sb.Close()) }()
	name, remove, err := c.shell(ctx)
	defer func() { err = errors.Join(err, remove()) }()
	if err != nil {
		return err
	}
	_, err = all.runsIn(ctx, rounds, sb, 8, timed("kubectl exec", func(ctx context.Context) error { return c.run(ctx, "exec", name, "--", "python3", "-c", one) }))
	return err
}

// requests counts what sandboxes ask of the API server, one after another.
func (c *podCluster) requests(ctx context.Context, _ *env, _ int) error {
	const n = 5
	return c.counted(ctx, n, func(do func() error) error {
		for range n {
			if err := do(); err != nil {
				return err
			}
		}
		return nil
	})
}

// manyAtOnce opens many, runs in each, and tells how many were served, when, and why the
// others were not. It counts requests, too.
func (c *podCluster) manyAtOnce(ctx context.Context, _ *env, _ int) error {
	const n = 50
	start := time.Now()
	var mu sync.Mutex
	var served []float64
	refused := map[string]int{}
	err := c.counted(ctx, n, func(do func() error) error {
		var wg sync.WaitGroup
		for range n {
			wg.Go(func() {
				err := do()
				mu.Lock()
				defer mu.Unlock()
				if err != nil {
					refused[reason(err)]++
					return
				}
				served = append(served, time.Since(start).Seconds())
			})
		}
		wg.Wait()
		return ctx.Err()
	})
	if err != nil {
		return err
	}
	fmt.Printf("%d asked for at once: %d served, opened, run and closed after %.1f s (median) and %.1f s (the last)\n",
		n, len(served), percentile(served, 50), percentile(served, 100))
	for _, why := range slices.Sorted(maps.Keys(refused)) {
		fmt.Printf("%d refused: %s\n", refused[why], why)
	}
	return nil
}

// counted has something done with sandboxes of a backend whose requests are counted, and
// prints how many there were.
func (c *podCluster) counted(ctx context.Context, n int, do func(one func() error) error) (err error) {
	counter, err := newCounter(c.kubeconfig)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, counter.close()) }()
	b, err := kubernetes.New(&counter.options)
	if err != nil {
		return err
	}
	if err := do(func() error { return c.whole(ctx, b) }); err != nil {
		return err
	}
	counts := counter.counts()
	sum := 0
	for _, what := range slices.Sorted(maps.Keys(counts)) {
		fmt.Printf("%-44s %10d %14.2f a sandbox\n", what, counts[what], float64(counts[what])/float64(n))
		sum += counts[what]
	}
	fmt.Printf("%-44s %10d %14.2f a sandbox\n", "requests in all", sum, float64(sum)/float64(n))
	aimAtMost("requests to the API server for each sandbox", 10, float64(sum)/float64(n))
	return nil
}

// own are the names in an error that differ from sandbox to sandbox.
var own = regexp.MustCompile(`sb-[0-9a-f]+|[0-9a-f]{32,}`)

func reason(err error) string { return own.ReplaceAllString(err.Error(), "...") }
