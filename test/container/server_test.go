//go:build linux

package container

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/llmsandbox/llmsandbox/internal/testcluster"
)

// runs runs code by a server, with a key and a sandbox of its own.
const runs = `
url=http://$1; key=$2
curl() { command curl --silent --show-error --fail-with-body --max-time 60 --header "X-API-Key: $key" "$@"; }
curl --retry 20 --retry-connrefused --retry-delay 1 --retry-all-errors "$url/readyz"
id=$(curl "$url/v1/sandboxes" --json '{"language": "python"}' | sed 's/.*"id":"\([^"]*\)".*/\1/')
curl "$url/v1/sandboxes/$id/run" --json '{"code": "print(6 * 7)"}'
curl --request DELETE "$url/v1/sandboxes/$id"
curl "$url/v1/run" --json '{"code": "try:\n    open(\"/state/server/server.db\")\nexcept PermissionError:\n    print(\"no\")"}'
`

// serves tries a server whose address and key a script sets as $1 and $2.
func (p place) serves(t *testing.T, script string) {
	t.Helper()
	out := p.sh(t, script+runs)
	for _, want := range []string{`"stdout":"42\n"`, `"stdout":"no\n"`} {
		if !strings.Contains(out, want) {
			t.Errorf("the server answers\n%s\nwant %s in it", out, want)
		}
	}
}

// server tries what docs/containers.md says of a server.
func server(t *testing.T, e engine) {
	t.Cleanup(func() { e.sh(t, e.program+" rm --force sandboxes && "+e.program+" volume rm --force sandboxes") })
	// The engine of the tests has no network to publish a port of.
	script := strings.NewReplacer("docker run --detach", ">container docker run --detach", "--publish 127.0.0.1:8321:8321", "--network host").Replace(section(t, "The HTTP server", "sh"))
	key := strings.TrimSpace(e.sh(t, script))
	e.serves(t, "set -- 127.0.0.1:8321 "+key)
	e.sh(t, e.program+" stop sandboxes")
	if out := e.sh(t, e.program+" inspect --format '{{.State.ExitCode}}' sandboxes"); out != "0\n" {
		t.Errorf("the server ends with %s, want 0", out)
	}
}

// serverInCluster tries deploy/container/server.yaml in a cluster that has the image.
func serverInCluster(t *testing.T, e engine, c *testcluster.Cluster) {
	state := filepath.Join(filepath.Dir(c.Kubeconfig), "server-state")
	if err := os.Mkdir(state, 0o777); err != nil {
		t.Fatal(err)
	}
	// Of another cluster, its provisioner makes one.
	const volume = `{"apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": "server-state"}, "spec": {"capacity": {"storage": "1Gi"},
"accessModes": ["ReadWriteOnce"], "hostPath": {"path": "STATE"}}}`
	t.Cleanup(func() {
		e.sh(t, "kubectl delete --now -f deploy/container/server.yaml && kubectl delete --now pv server-state")
		if err := os.RemoveAll(state); err != nil {
			t.Error(err)
		}
	})
	e.sh(t, "chmod 777 "+state+"; kubectl apply -f - <<'END'\n"+strings.Replace(volume, "STATE", state, 1)+"\nEND\n")
	lines := strings.Split(strings.TrimSpace(e.sh(t, section(t, "The HTTP server in Kubernetes", "sh"))), "\n")
	const forward = "kubectl -n llmsandbox-server port-forward service/llmsandbox 8321:80"
	e.serves(t, forward+" >/dev/null & trap 'kill $!' EXIT; set -- 127.0.0.1:8321 "+lines[len(lines)-1])
}
