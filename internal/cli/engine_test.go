package cli

import (
	"slices"
	"strings"
	"testing"
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
		t.Errorf("the build: %+v", o.Build)
	}
	if o.Settings.Memory == nil || *o.Settings.Memory != 64<<20 || len(o.Settings.CapAdd) != 2 {
		t.Errorf("the settings: %+v", o.Settings)
	}
	if o.Environment == nil || !slices.Equal(o.Environment.Enter, []string{"micromamba", "run", "-n", "tools"}) {
		t.Errorf("the environment: %+v", o.Environment)
	}
	p.Engine.BuildContext = "."
	if o, err := p.options(); err != nil || o.Build.Context != "." {
		t.Errorf("the build's folder: %+v, %v", o.Build, err)
	}
}

func TestMicromambaIsAnEnvironmentOfDocker(t *testing.T) {
	for _, c := range []struct {
		backend, env string
		want         []string
	}{
		{"docker", "", nil},
		{"micromamba", "", []string{"micromamba", "run", "-n", "base"}},
		{"micromamba", "tools", []string{"micromamba", "run", "-n", "tools"}},
		{"podman", "tools", []string{"micromamba", "run", "-n", "tools"}},
	} {
		p := place{Backend: c.backend, Engine: engineFlags{MicromambaEnv: c.env}}
		o, err := p.options()
		var got []string
		if o.Environment != nil {
			got = o.Environment.Enter
		}
		if err != nil || !slices.Equal(got, c.want) {
			t.Errorf("%s, %q: %q, %v, want %q", c.backend, c.env, got, err, c.want)
		}
	}
}
