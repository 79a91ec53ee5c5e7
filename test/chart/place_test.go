//go:build linux

package chart

import (
	"bufio"
	"net"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/llmsandbox/llmsandbox/client"
	"github.com/llmsandbox/llmsandbox/internal/testcluster"
	"github.com/llmsandbox/llmsandbox/internal/testimage"
	"github.com/llmsandbox/llmsandbox/internal/testpostgres"
)

const root = "../.."

// A place is a cluster that has the images, and the commands for it.
type place struct {
	cluster *testcluster.Cluster
	env     []string
}

func newPlace(t *testing.T) place {
	t.Helper()
	tools := os.Getenv("LLMSANDBOX_TEST_COMMANDS")
	if _, err := os.Stat(filepath.Join(tools, "helm")); err != nil || tools == "" {
		testimage.Must(t, testimage.Lack("helm is not there: run make deploy-tools, and set LLMSANDBOX_TEST_COMMANDS to bin/test"))
	}
	p := place{cluster: testcluster.Start(t), env: os.Environ()}
	p.cluster.Images(t)
	kit := strings.TrimSpace(p.sh(t, "test/cluster/build"))
	image := filepath.Join(t.TempDir(), "cli.tar")
	p.sh(t, "ENGINE=none TAR="+image+" TAG=registry.example.org/llmsandbox/cli:1 scripts/cli-image")
	p.cluster.Load(t, image)
	p.env = append(p.env, "HOME="+t.TempDir(), "KUBECONFIG="+p.cluster.Kubeconfig, "PATH="+strings.Join([]string{tools, kit, os.Getenv("PATH")}, ":"))
	return p
}

// sh runs a script at the root of the repository, and returns what it prints.
func (p place) sh(t *testing.T, script string) string {
	t.Helper()
	cmd := exec.Command("bash", "-euo", "pipefail", "-c", script)
	cmd.Dir, cmd.Env = root, p.env
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%s: %v\n%s%s", script, err, out, stderr.String())
	}
	return string(out)
}

// database starts a PostgreSQL server that pods reach, and returns the URL of a database there.
func (p place) database(t *testing.T) string {
	t.Helper()
	db := testpostgres.ForTest(t)
	l, err := p.cluster.Listen(net.JoinHostPort(p.cluster.Address(), "0"))
	if err != nil {
		t.Fatal(err)
	}
	db.Serve(t, l)
	u, err := url.Parse(db.Database(t))
	if err != nil {
		t.Fatal(err)
	}
	u.Host, u.RawQuery = l.Addr().String(), "sslmode=disable"
	return u.String()
}

// forward leads to a Service or a pod of the servers, and returns an address there until the test ends.
func (p place) forward(t *testing.T, to string) string {
	t.Helper()
	port := ":8321"
	if strings.HasPrefix(to, "service/") {
		port = ":80"
	}
	// bash finds kubectl, which then has its process.
	cmd := exec.Command("bash", "-c", `exec kubectl -n llmsandbox-server port-forward "$1" "$2"`, "bash", to, port)
	cmd.Env = p.env
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill() // it may have ended with its pod
		_ = cmd.Wait()
	})
	line, err := bufio.NewReader(out).ReadString('\n')
	_, address, ok := strings.Cut(line, "Forwarding from ")
	if !ok {
		t.Fatalf("port-forward to %s prints %q, %v", to, line, err)
	}
	address, _, _ = strings.Cut(address, " ")
	return "http://" + address
}

// client is of a server, with a key.
func (p place) client(t *testing.T, to, key string) *client.Client {
	t.Helper()
	c, err := client.New(p.forward(t, to), key)
	if err != nil {
		t.Fatal(err)
	}
	return c
}
