package cli

import (
	"encoding/json"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/llmsandbox/llmsandbox/backend/kubernetes"
)

func TestUnknownBackendSuggests(t *testing.T) {
	for name, want := range map[string]string{
		"dokcer": "docker", "Docker": "docker", "docking": "docker", "pod": "podman", "podmam": "podman", "mamba": "", "locl": "local",
		"micromaba": "micromamba", "kubernets": "kubernetes", "kube": "kubernetes", "nowhere": "", "": "",
	} {
		text := unknownBackend(name).Error()
		if want == "" && strings.Contains(text, "did you mean") || want != "" && !strings.Contains(text, "did you mean "+want+"?") {
			t.Errorf("%q: %s, want %q suggested", name, text, want)
		}
		for _, known := range backendNames {
			if !strings.Contains(text, known) {
				t.Errorf("%q: %s does not name %s", name, text, known)
			}
		}
	}
}

func TestEngineOptions(t *testing.T) {
	p := place{Backend: "docker", Engine: engineFlags{
		Dockerfile: "dir/Dockerfile.test", BuildArgs: []string{"A=1", "B=x=y"}, KeepImage: true,
		RuntimeOptions: []string{"mem_limit=64m", "cap_add=NET_ADMIN", "cap_add=CHOWN"}, MicromambaEnv: "tools",
	}}
	o, err := p.options()
	if err != nil {
		t.Fatal(err)
	}
	if o.Build == nil || o.Build.Dockerfile != "dir/Dockerfile.test" || o.Build.Context != "dir" || o.Build.Args["B"] != "x=y" || !o.KeepImage {
		t.Errorf("the build: %+v, want Build not nil, Dockerfile = \"dir/Dockerfile.test\", Context = \"dir\", o.Build.Args[\"B\"] = \"x=y\", KeepImage true", o.Build)
	}
	if o.Settings.Memory == nil || *o.Settings.Memory != 64<<20 || len(o.Settings.CapAdd) != 2 {
		t.Errorf("the settings: %+v, want Memory = 64 MiB, len(o.Settings.CapAdd) = 2", o.Settings)
	}
	if o.Micromamba == nil || o.Micromamba.Env != "tools" {
		t.Errorf("the environment: %+v, want tools", o.Micromamba)
	}
	p.Engine.BuildContext = "."
	if o, err := p.options(); err != nil || o.Build.Context != "." {
		t.Errorf("the build's directory: %+v, %v, want no error, Context = \".\"", o.Build, err)
	}
}

func TestMicromambaIsAnEnvironmentOfDocker(t *testing.T) {
	for _, c := range []struct {
		backend, env, want string
	}{
		{"docker", "", ""},
		{"micromamba", "", "base"},
		{"micromamba", "tools", "tools"},
		{"podman", "tools", "tools"},
	} {
		p := place{Backend: c.backend, Engine: engineFlags{MicromambaEnv: c.env}}
		o, err := p.options()
		var got string
		if o.Micromamba != nil {
			got = o.Micromamba.Env
		}
		if err != nil || got != c.want {
			t.Errorf("%s, %q: %q, %v, want %q", c.backend, c.env, got, err, c.want)
		}
	}
}

func TestKubernetesHasItsName(t *testing.T) {
	if kubernetesName != kubernetes.Name {
		t.Errorf("%q, the backend calls itself %q, want Name", kubernetesName, kubernetes.Name)
	}
}

func TestClusterOptions(t *testing.T) {
	p := place{Backend: "kubernetes", Cluster: clusterFlags{Kubeconfig: "admin.conf", Context: "test", Namespace: "team"}, Pod: podFlags{
		RuntimeClass: "gvisor", AgentImage: "agent:1", PullPolicy: "ifnotpresent", PullSecrets: []string{"a", "b"},
		ServiceAccount: "runner", NodeSelector: []string{"disk=fast"}, WaitForNode: "5m", StartTimeout: "90s", NetworkEnforced: true,
	}}
	o, err := p.clusterOptions()
	if err != nil {
		t.Fatal(err)
	}
	if want, _ := filepath.Abs("admin.conf"); o.Kubeconfig != want || o.Context != "test" || o.Namespace != "team" {
		t.Errorf("where: %+v, want Kubeconfig = %v, Context = \"test\", Namespace = \"team\"", o, want)
	}
	if o.RuntimeClass != "gvisor" || o.AgentImage != "agent:1" || o.PullPolicy != "IfNotPresent" || !slices.Equal(o.PullSecrets, []string{"a", "b"}) ||
		o.ServiceAccount != "runner" || o.NodeSelector["disk"] != "fast" || o.WaitForNode != 5*time.Minute || o.StartTimeout != 90*time.Second ||
		!o.NetworkPolicyEnforced {
		t.Errorf("what: %+v", o)
	}
	// A supervisor gets the same place.
	text, err := json.Marshal(p)
	if err != nil {
		t.Fatal(err)
	}
	var there place
	if err := json.Unmarshal(text, &there); err != nil || !reflect.DeepEqual(there, p) {
		t.Errorf("%+v travels as %+v, %v", p, there, err)
	}
}

// Every flag for clusters is refused where there is none.
func TestClusterFlagsAreRefusedElsewhere(t *testing.T) {
	every := []podFlags{
		{Pod: "x"}, {Container: "x"}, {Template: "x"}, {RuntimeClass: "x"}, {AgentImage: "x"}, {PullPolicy: "x"}, {PullSecrets: []string{"x"}},
		{ServiceAccount: "x"}, {NodeSelector: []string{"x"}}, {WaitForNode: "x"}, {StartTimeout: "x"}, {NetworkEnforced: true},
	}
	if n := reflect.TypeFor[podFlags]().NumField(); n != len(every) {
		t.Errorf("%d flags are tried, there are %d", len(every), n)
	}
	for _, f := range every {
		for _, backend := range []string{"local", "docker", "podman", "micromamba"} {
			p := place{Backend: backend, Pod: f}
			if err := p.check("", false); err == nil || !strings.Contains(err.Error(), "the backend is "+backend+": add --backend kubernetes") {
				t.Errorf("%s, %+v: %v, want an error containing %q", backend, f, err, "the backend is "+backend+": add --backend kubernetes")
			}
		}
	}
	for _, f := range []clusterFlags{{Kubeconfig: "x"}, {Context: "x"}, {Namespace: "x"}} {
		p := place{Backend: "docker", Cluster: f}
		if _, err := p.open(); err == nil || !strings.Contains(err.Error(), "is for clusters, and the backend is docker") {
			t.Errorf("%+v: %v, want an error containing \"is for clusters, and the backend is docker\"", f, err)
		}
	}
}

func TestAgain(t *testing.T) {
	for want, p := range map[string]place{
		"":                  {Backend: "local"},
		" --backend podman": {Backend: "podman"},
		" --backend kubernetes --kube-context c --namespace n": {Backend: "kubernetes", Cluster: clusterFlags{Context: "c", Namespace: "n"}},
	} {
		if got := p.again(); got != want {
			t.Errorf("%+v: %q, want %q", p, got, want)
		}
	}
}
