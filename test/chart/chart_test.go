//go:build linux

package chart

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/llmsandbox/llmsandbox"
	"github.com/llmsandbox/llmsandbox/client"
	"github.com/llmsandbox/llmsandbox/internal/testfaults"
)

const servers = "kubectl -n llmsandbox-server "

// TestChart installs, upgrades and removes the chart as its page says, and installs it again where it has been.
func TestChart(t *testing.T) {
	p := newPlace(t)
	url := p.database(t)
	t.Cleanup(func() { // what the uninstalled chart has left, or all of it
		p.sh(t, "helm uninstall llmsandbox --ignore-not-found; kubectl -n llmsandbox delete pods --all --now; kubectl delete namespace llmsandbox llmsandbox-server --ignore-not-found")
	})
	t.Cleanup(func() {
		if t.Failed() {
			t.Log(p.sh(t, "kubectl get pods -A; "+servers+"logs --prefix --tail=100 --selector=app.kubernetes.io/name=llmsandbox-server"))
		}
	})
	const install = "helm install llmsandbox deploy/chart "
	script := page(t)
	if !strings.Contains(script, install) || !strings.Contains(script, "postgres://…") {
		t.Fatalf("the page's commands are\n%s\nwant %q and the database's URL in them", script, install)
	}
	said := p.sh(t, strings.NewReplacer(install, install+"--set replicas=1 ", "postgres://…", url).Replace(script))
	first := regexp.MustCompile(`lsb_\S+`).FindString(said)
	if first == "" {
		t.Fatalf("the page's commands print\n%s\nwant a key", said)
	}
	p.rolled(t)

	ctx := testfaults.Context(t)
	boss := p.client(t, "service/llmsandbox-server", first)
	made, key, err := boss.CreateKey(ctx, "own", []string{"read", "write"}, 0)
	if err != nil {
		t.Fatalf("make a key with the first one: %v", err)
	}
	keys, err := boss.Keys(ctx)
	if err != nil {
		t.Fatal(err)
	}
	for _, k := range keys {
		if k.ID == made.ID {
			continue
		}
		if err := boss.RevokeKey(ctx, k.ID); err != nil {
			t.Error(err)
		}
	}
	sb, err := p.client(t, "service/llmsandbox-server", key).Open(ctx, &llmsandbox.Options{Language: "python"})
	if err != nil {
		t.Fatal(err)
	}
	prints(t, sb, "open('file', 'w').write('kept')\nprint(6 * 7)", "42\n")
	kernel, err := sb.Kernel(ctx, "", nil)
	if err != nil {
		t.Fatal(err)
	}
	if cell, err := kernel.Run(ctx, "x = 1", nil); err != nil || cell.Status != llmsandbox.StatusOK {
		t.Fatalf("%v, %+v, want it ok", err, cell)
	}

	// The autoscaler has what it scales, if no metric; here it is done in its place.
	p.sh(t, servers+`wait hpa/llmsandbox-server --for=condition=AbleToScale --timeout=3m
`+servers+`scale deployment/llmsandbox-server --replicas=2
helm upgrade llmsandbox deploy/chart --reuse-values --set replicas=3 --set extraArgs={--max-runs=32} --set quota.pods=150
`+servers+`wait deployment/llmsandbox-server --for=jsonpath={.spec.replicas}=3 --timeout=3m`)
	p.rolled(t)
	all := strings.Fields(p.sh(t, servers+"get pods --output=name"))
	if len(all) != 3 {
		t.Errorf("after the upgrade the servers are %v, want 3", all)
	}
	for _, pod := range all {
		sb, err := p.client(t, pod, key).Attach(ctx, sb.ID())
		if err != nil {
			t.Fatalf("at %s: %v", pod, err)
		}
		prints(t, sb, "print(open('file').read())", "kept\n")
		kernel, err := sb.AttachKernel(ctx, kernel.Info().ID, nil, nil)
		if err != nil {
			t.Fatalf("at %s: %v", pod, err)
		}
		if cell, err := kernel.Run(ctx, "print(x)", nil); err != nil || cell.Stdout != "1\n" {
			t.Errorf("at %s, the kernel says %+v, %v, want what it knew before the upgrade", pod, cell, err)
		}
	}
	if got := p.sh(t, servers+"get jobs --output=name; kubectl -n llmsandbox get quota llmsandbox --output=jsonpath={.spec.hard.pods}"); got != "150" {
		t.Errorf("after the upgrade the first key's Job and the quota are %q, want none, and 150", got)
	}

	p.sh(t, "helm uninstall llmsandbox")
	// The pod stays for some minutes, until the cluster removes it with its Job.
	p.sh(t, servers+`wait pods --all --for=delete --timeout=3m
kubectl -n llmsandbox wait pod/llmsandbox-`+sb.ID()+` --for=condition=Ready=False --timeout=3m`)
	const left = `configmap/kube-root-ca.crt
networkpolicy.networking.k8s.io/default-deny
networkpolicy.networking.k8s.io/llmsandbox-isolated
serviceaccount/default
configmap/kube-root-ca.crt
secret/llmsandbox-database
serviceaccount/default
`
	got := p.sh(t, `kinds=$(kubectl api-resources --namespaced --verbs=list --output=name | grep -vE '^(events|pods|jobs)' | paste -sd,)
for n in llmsandbox llmsandbox-server; do kubectl -n $n get $kinds --output=name | sort; done`)
	if got != left {
		t.Errorf("the uninstalled chart leaves\n%s\nwant\n%s", got, left)
	}

	p.sh(t, install+"--set image=registry.example.org/llmsandbox/cli:1 --set replicas=1 --set createNamespaces=false --set firstKey=false --wait --timeout 3m")
	res, err := p.client(t, "service/llmsandbox-server", key).Run(ctx, "print(6 * 7)", &llmsandbox.Options{Language: "python"})
	if err != nil || res.Stdout != "42\n" {
		t.Errorf("installed again, with the key of before: %v, %+v, want 42", err, res)
	}
	p.sh(t, "helm uninstall llmsandbox && "+servers+"wait pods --all --for=delete --timeout=3m")
}

// page is what deploy/README.md has one type to install the chart.
func page(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, "deploy", "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, part, _ := strings.Cut(string(text), "\n### With Helm\n")
	_, part, _ = strings.Cut(part, "\n```sh\n")
	script, _, ok := strings.Cut(part, "\n```\n")
	if !ok {
		t.Fatal("the page shows no commands")
	}
	return script
}

// rolled returns when all servers are ready and as the chart says, and there are no others.
func (p place) rolled(t *testing.T) {
	t.Helper()
	p.sh(t, servers+`rollout status deployment/llmsandbox-server --timeout=5m
ending=$(`+servers+`get pods --output=go-template='{{range .items}}{{if .metadata.deletionTimestamp}}pod/{{.metadata.name}} {{end}}{{end}}')
[ -z "$ending" ] || `+servers+`wait --for=delete $ending --timeout=3m`)
}

// prints runs a program that has to print that.
func prints(t *testing.T, sb *client.Sandbox, code, want string) {
	t.Helper()
	res, err := sb.Run(testfaults.Context(t), code, nil)
	if err != nil || res.Status != llmsandbox.StatusOK || res.Stdout != want {
		t.Errorf("%q: %v, %+v, want %q", code, err, res, want)
	}
}
