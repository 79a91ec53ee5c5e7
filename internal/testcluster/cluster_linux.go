package testcluster

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"go.uber.org/goleak"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/llmsandbox/llmsandbox/internal/testengine"
	"github.com/llmsandbox/llmsandbox/internal/testimage"
)

// GVisor is the RuntimeClass of the cluster whose pods run in gVisor.
const GVisor = "gvisor"

// UserAgent is what the clients of this package call themselves, so that their requests
// can be distinguished from those of what is tested.
const UserAgent = "testcluster"

// A Cluster is the cluster of this test binary. Its methods may be called concurrently,
// but for those that stop a daemon.
type Cluster struct {
	Kubeconfig string // path; of an administrator

	kit    kit
	config *rest.Config
	watch  *watcher

	mu     sync.Mutex
	images bool // are there
}

var (
	mu      sync.Mutex
	tried   bool
	started *Cluster
	problem error
)

// Start is the cluster of this test binary, which the first call starts. Where there can
// be none the test is skipped, or fails where everything must run.
func Start(t testing.TB) *Cluster {
	t.Helper()
	mu.Lock()
	defer mu.Unlock()
	if !tried {
		tried = true
		// It outlives the test that wants it first.
		started, problem = start(context.Background())
	}
	testimage.Must(t, problem)
	return started
}

func start(ctx context.Context) (*Cluster, error) {
	k, err := findKit()
	if err != nil {
		return nil, err
	}
	w, err := k.takeTurn()
	if err != nil {
		return nil, err
	}
	if _, err := k.run(ctx, nil, "up"); err != nil {
		return nil, errors.Join(err, w.end())
	}
	c := &Cluster{Kubeconfig: filepath.Join(k.state, "kubeconfig"), kit: k, watch: w}
	if c.config, err = clientcmd.BuildConfigFromFlags("", c.Kubeconfig); err != nil {
		return nil, errors.Join(err, w.end())
	}
	c.config.UserAgent, c.config.QPS = UserAgent, -1
	return c, nil
}

// Config is an administrator's access, for looking at the cluster from outside. The
// caller may change it.
func (c *Cluster) Config() *rest.Config { return rest.CopyConfig(c.config) }

// Address is that of the node, as pods reach it.
func (c *Cluster) Address() string {
	u, _ := url.Parse(c.config.Host) // which has connected
	return u.Hostname()
}

// Client has connections of its own, which end with the test.
func (c *Cluster) Client(t testing.TB) kubernetes.Interface {
	t.Helper()
	config := c.Config()
	// Without it client-go would share the connections with whatever is tested.
	config.Dial = new(net.Dialer).DialContext
	transport, err := rest.HTTPClientFor(config)
	if err != nil {
		t.Fatal(err)
	}
	client, err := kubernetes.NewForConfigAndClient(config, transport)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { utilnet.CloseIdleConnectionsFor(transport.Transport) })
	return client
}

// Load gives the cluster the images of a `docker save` file, such as testimage.Save writes.
func (c *Cluster) Load(t testing.TB, path string) {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, err := c.kit.run(t.Context(), f, "load"); err != nil {
		t.Fatal(err)
	}
}

// Main runs the tests, ends the cluster and the engines they started, and exits. A package
// that wants a cluster calls it from its TestMain.
func Main(m *testing.M) {
	code := m.Run()
	var err error
	if started != nil {
		err = started.stop()
	}
	if err := errors.Join(err, testengine.Stop()); err != nil {
		fmt.Fprintln(os.Stderr, "testcluster:", err)
		code = max(code, 1)
	}
	os.Exit(code)
}

// stop ends the cluster. Pods that tests left in it are an error.
func (c *Cluster) stop() error {
	left, err := c.pods()
	if err != nil {
		err = fmt.Errorf("look for what tests left: %w", err)
	} else if len(left) > 0 {
		err = fmt.Errorf("tests left pods: %s", strings.Join(left, ", "))
	}
	return errors.Join(err, c.watch.end())
}

// pods are those of all namespaces that are not deleted.
func (c *Cluster) pods() ([]string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), removeTimeout)
	defer cancel()
	client, err := kubernetes.NewForConfig(c.Config())
	if err != nil {
		return nil, err
	}
	all, err := client.CoreV1().Pods("").List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, err
	}
	var list []string
	for _, p := range all.Items {
		if p.DeletionTimestamp == nil {
			list = append(list, p.Namespace+"/"+p.Name)
		}
	}
	return list, nil
}

// IgnoreGoroutines is for a test that looks for leaked goroutines: those that a running
// engine has end with Main. The cluster has none.
func IgnoreGoroutines() goleak.Option { return testengine.IgnoreDaemons() }

// command runs a program to its end, and returns what it prints.
func command(cmd *exec.Cmd) (string, error) {
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err := cmd.Run(); err != nil {
		return "", fmt.Errorf("%s: %w\n%s", strings.Join(cmd.Args, " "), err, bytes.TrimSpace(errs.Bytes()))
	}
	return out.String(), nil
}
