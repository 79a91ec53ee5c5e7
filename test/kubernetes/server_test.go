//go:build linux

package kubernetes

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/llmsandbox/llmsandbox/internal/testfaults"
	"github.com/llmsandbox/llmsandbox/internal/testpostgres"
)

// serverNamespace is the one that deploy/server makes for the servers themselves.
const serverNamespace = "llmsandbox-server"

// TestServers: of the servers of deploy/server, each answers for every sandbox, whichever of them made it, and when one is killed, or all are rolled,
// their sandboxes live on with what runs in them.
func TestServers(t *testing.T) {
	d := newDeployment(t)
	d.run(t, "create", "namespace", serverNamespace)
	d.run(t, "-n", serverNamespace, "create", "secret", "generic", "llmsandbox-database", "--from-literal=url="+d.database(t))
	d.apply(t, "deploy/server")
	d.run(t, "-n", serverNamespace, "wait", "--for=condition=complete", "job/first-key", "--timeout=3m")
	key := regexp.MustCompile(`lsb_\S+`).FindString(d.run(t, "-n", serverNamespace, "logs", "job/first-key"))
	t.Cleanup(func() {
		if t.Failed() {
			t.Log(d.run(t, "-n", serverNamespace, "logs", "--prefix", "--tail=200", "--selector=app.kubernetes.io/name=llmsandbox-server"))
		}
	})
	rolled := func() []*replica {
		t.Helper()
		d.run(t, "-n", serverNamespace, "rollout", "status", "deployment/llmsandbox-server", "--timeout=5m")
		return d.replicas(t, key)
	}
	all := rolled()
	if len(all) != 3 {
		t.Fatalf("there are %d servers, want 3", len(all))
	}
	var sb struct{ ID string }
	all[0].want(t, http.StatusCreated, &sb, http.MethodPost, "/v1/sandboxes", `{"language": "bash", "lifetime_seconds": 1200, "limits": {"timeout_seconds": 300}}`)
	path := "/v1/sandboxes/" + sb.ID
	all[1].want(t, http.StatusOK, nil, http.MethodPost, path+"/run", `{"code": "mkfifo go; echo kept >file"}`)
	var kernel struct{ ID string }
	all[2].want(t, http.StatusCreated, &kernel, http.MethodPost, path+"/kernels", `{}`)
	cells := path + "/kernels/" + kernel.ID + "/cells"
	all[1].want(t, http.StatusOK, nil, http.MethodPost, cells, `{"code": "X=1"}`)
	var program struct{ ID uint64 }
	all[2].want(t, http.StatusCreated, &program, http.MethodPost, path+"/processes", `{"code": "echo one; cat go; echo two", "timeout_seconds": 300}`)

	d.run(t, "-n", serverNamespace, "delete", "pod", all[0].pod, "--force", "--grace-period=0")
	all[1].want(t, http.StatusOK, nil, http.MethodPost, path+"/exec", `{"shell": "echo between >go"}`)
	type ended struct {
		State  string
		Result struct{ Status, Stdout string }
	}
	var p ended
	all[2].want(t, http.StatusOK, &p, http.MethodGet, fmt.Sprintf("%s/processes/%d?wait_seconds=60", path, program.ID), "")
	if p.State != "ended" || p.Result.Status != "ok" || p.Result.Stdout != "one\nbetween\ntwo\n" {
		t.Errorf("after its server was killed the program has %+v, want one, between, two", p)
	}

	d.run(t, "-n", serverNamespace, "rollout", "restart", "deployment/llmsandbox-server")
	all = rolled()
	var res struct{ Status, Stdout string }
	all[0].want(t, http.StatusOK, &res, http.MethodPost, cells, `{"code": "echo $X $(cat file)"}`)
	if res.Status != "ok" || res.Stdout != "1 kept\n" {
		t.Errorf("after all servers were rolled the kernel says %+v, want 1 kept", res)
	}
	all[1].want(t, http.StatusNoContent, nil, http.MethodDelete, path, "")
	all[2].want(t, http.StatusNotFound, nil, http.MethodGet, path, "")
}

// database starts a PostgreSQL server beside the cluster, and returns the URL of a database by which pods reach it.
func (d deployment) database(t *testing.T) string {
	t.Helper()
	db, err := testpostgres.Start()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := db.Stop(); err != nil {
			t.Error(err)
		}
	})
	l, err := d.node.Listen(net.JoinHostPort(d.node.Address(), "0"))
	if err != nil {
		t.Fatal(err)
	}
	var working sync.WaitGroup
	working.Go(func() {
		for {
			from, err := l.Accept()
			if err != nil {
				return // it was closed
			}
			to, err := db.Dial()
			if err != nil {
				from.Close()
				t.Error(err)
				continue
			}
			for _, way := range [][2]net.Conn{{from, to}, {to, from}} {
				working.Go(func() {
					_, _ = io.Copy(way[0], way[1]) // either end closes it
					way[0].Close()
				})
			}
		}
	})
	t.Cleanup(working.Wait)
	t.Cleanup(func() { l.Close() })
	u, err := url.Parse(db.Database(t))
	if err != nil {
		t.Fatal(err)
	}
	u.Host, u.RawQuery = l.Addr().String(), "sslmode=disable"
	return u.String()
}

// A replica is one of the servers, as the API server leads to it.
type replica struct {
	pod, base, key string
	client         *http.Client
}

// replicas are the servers there are.
func (d deployment) replicas(t *testing.T, key string) (all []*replica) {
	t.Helper()
	config := d.node.Config()
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.CloseIdleConnections)
	pods, err := d.client.CoreV1().Pods(serverNamespace).List(testfaults.Context(t), metav1.ListOptions{LabelSelector: "app.kubernetes.io/name=llmsandbox-server"})
	if err != nil {
		t.Fatal(err)
	}
	for _, pod := range pods.Items {
		if pod.DeletionTimestamp != nil {
			continue
		}
		all = append(all, &replica{pod.Name, fmt.Sprintf("%s/api/v1/namespaces/%s/pods/http:%s:8321/proxy", config.Host, serverNamespace, pod.Name), key, client})
	}
	return all
}

// want asks until the server is no longer busy, for an answer of that status, and decodes it into v, unless that is nil.
func (r *replica) want(t *testing.T, status int, v any, method, path, body string) {
	t.Helper()
	var text []byte
	got := 0
	for until := time.Now().Add(2 * time.Minute); ; {
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
		defer cancel()
		request, err := http.NewRequestWithContext(ctx, method, r.base+path, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		request.Host = serverNamespace + "." + serverNamespace // which the API server passes on
		request.Header.Set("X-API-Key", r.key)
		if body != "" {
			request.Header.Set("Content-Type", "application/json")
		}
		answer, err := r.client.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		text, err = io.ReadAll(answer.Body)
		answer.Body.Close()
		if err != nil {
			t.Fatal(err)
		}
		if got = answer.StatusCode; got != http.StatusTooManyRequests || time.Now().After(until) {
			break
		}
		time.Sleep(time.Second) // as its Retry-After says
	}
	if got != status {
		t.Fatalf("%s %s at %s: %d %s, want %d", method, path, r.pod, got, text, status)
	}
	if v == nil {
		return
	}
	if err := json.Unmarshal(text, v); err != nil {
		t.Fatalf("%s %s: %v: %s", method, path, err, text)
	}
}
