package engine

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/llmsandbox/llmsandbox/backend"
	"github.com/llmsandbox/llmsandbox/internal/engine/image"
)

func TestMergeEnv(t *testing.T) {
	got := mergeEnv([]string{"A=1", "B=2"}, []string{"B=3", "C=", "no value", "=no name", "LLMSANDBOX_TOKEN=x", "D=a=b"})
	if diff := cmp.Diff([]string{"A=1", "B=3", "C=", "D=a=b"}, got); diff != "" {
		t.Errorf("differs (-want +got):\n%s", diff)
	}
}

func TestAgentEnvRoundTrip(t *testing.T) {
	b := &Backend{}
	g := b.guest(backend.Spec{Env: []string{"K=v"}}, image.Image{Ref: "x:1", Arch: "arm64", User: "app", Workdir: "/app", Env: []string{"PATH=/opt/bin", "LANG=fr"}})
	if g.StartDir != "/app" || strings.Join(g.Env, " ") != "PATH=/opt/bin LANG=C.UTF-8 HOME=/sandbox TMPDIR=/tmp LC_ALL=C.UTF-8 K=v" {
		t.Errorf("guest %+v, want StartDir /app and the image's environment with that of the sandbox over it", g)
	}
	env, err := agentEnv("secret", g)
	if err != nil {
		t.Fatal(err)
	}
	token, got, err := parseAgentEnv(append([]string{"X=1"}, env...))
	if err != nil || token != "secret" {
		t.Fatalf("token %q, %v, want no error, token = \"secret\"", token, err)
	}
	if diff := cmp.Diff(g, got); diff != "" {
		t.Errorf("differs (-want +got):\n%s", diff)
	}
	for _, bad := range [][]string{nil, {envToken + "=x"}, {envToken + "=x", envGuest + "={"}, env[1:]} {
		if _, _, err := parseAgentEnv(bad); err == nil {
			t.Errorf("%q was taken, want an error", bad)
		}
	}
}
