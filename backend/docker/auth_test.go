package docker

import (
	"context"
	"encoding/base64"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/moby/moby/api/pkg/authconfig"
	"github.com/moby/moby/api/types/registry"
)

// helpers puts credential helpers on the PATH.
func helpers(t *testing.T, scripts map[string]string) {
	t.Helper()
	if runtime.GOOS == "windows" {
		t.Skip("the helpers of this test are shell scripts")
	}
	dir := t.TempDir()
	for name, script := range scripts {
		if err := os.WriteFile(filepath.Join(dir, "docker-credential-"+name), []byte("#!/bin/sh\nread -r server\n"+script), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("PATH", dir+string(os.PathListSeparator)+os.Getenv("PATH"))
}

func TestRegistryAuth(t *testing.T) {
	basic := base64.StdEncoding.EncodeToString([]byte("me:secret"))
	const dockerHub = "https://index.docker.io/v1/"
	for _, c := range []struct {
		name, config, env, ref string
		want                   registry.AuthConfig // empty: none
		words                  []string            // of the error
	}{
		{name: "nothing", ref: "python:3"},
		{name: "another registry", config: `{"auths":{"r.example":{"auth":"` + basic + `"}}}`, ref: "s.example/x"},
		{name: "file", config: `{"auths":{"r.example:5000":{"auth":"` + basic + `"}}}`, ref: "r.example:5000/x:1",
			want: registry.AuthConfig{Username: "me", Password: "secret", ServerAddress: "r.example:5000"}},
		{name: "file, old form", config: `{"auths":{"https://r.example/v1/":{"auth":"` + basic + `"}}}`, ref: "r.example/x@sha256:" + strings.Repeat("0", 64),
			want: registry.AuthConfig{Username: "me", Password: "secret", ServerAddress: "r.example"}},
		{name: "the default registry", config: `{"auths":{"` + dockerHub + `":{"auth":"` + basic + `"}}}`, ref: "python",
			want: registry.AuthConfig{Username: "me", Password: "secret", ServerAddress: dockerHub}},
		{name: "identity token", config: `{"auths":{"r.example":{"identitytoken":"t"}}}`, ref: "r.example/x",
			want: registry.AuthConfig{IdentityToken: "t", ServerAddress: "r.example"}},
		{name: "store", config: `{"credsStore":"good"}`, ref: "r.example/x",
			want: registry.AuthConfig{Username: "helped", Password: "for r.example", ServerAddress: "r.example"}},
		{name: "helper over store", config: `{"credsStore":"bad","credHelpers":{"r.example":"token"}}`, ref: "r.example/x",
			want: registry.AuthConfig{IdentityToken: "tok", ServerAddress: "r.example"}},
		{name: "helper has none", config: `{"credsStore":"none"}`, ref: "r.example/x"},
		{name: "helper fails", config: `{"credsStore":"bad"}`, ref: "r.example/x",
			words: []string{"r.example", "docker-credential-bad", "the keychain is locked", "and stderr too", "docker login"}},
		{name: "helper talks nonsense", config: `{"credsStore":"odd"}`, ref: "r.example/x", words: []string{"docker-credential-odd", "failed"}},
		{name: "helper talks without end", config: `{"credsStore":"endless"}`, ref: "r.example/x", words: []string{"docker-credential-endless", "bytes of output"}},
		{name: "helper without words", config: `{"credsStore":"empty"}`, ref: "r.example/x", words: []string{"docker-credential-empty", "without a user"}},
		{name: "no such helper", config: `{"credHelpers":{"r.example":"absent"}}`, ref: "r.example/x", words: []string{"docker-credential-absent", "install it"}},
		{name: "environment over helper", config: `{"credsStore":"bad"}`, env: `{"auths":{"r.example":{"auth":"` + basic + `"}}}`, ref: "r.example/x",
			want: registry.AuthConfig{Username: "me", Password: "secret", ServerAddress: "r.example"}},
		{name: "environment of another registry", config: `{"credsStore":"good"}`, env: `{"auths":{"s.example":{"auth":"` + basic + `"}}}`, ref: "r.example/x",
			want: registry.AuthConfig{Username: "helped", Password: "for r.example", ServerAddress: "r.example"}},
		{name: "environment damaged", env: `{"auths":`, ref: "r.example/x", words: []string{"DOCKER_AUTH_CONFIG"}},
		{name: "environment without password", env: `{"auths":{"r.example":{"auth":"bWU="}}}`, ref: "r.example/x", words: []string{"DOCKER_AUTH_CONFIG", "USER:PASSWORD"}},
		{name: "configuration damaged", config: `{"auths":`, ref: "r.example/x", words: []string{"config.json"}},
		{name: "no reference", ref: "Not A Reference", words: []string{"Not A Reference"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := fakeHome(t)
			helpers(t, map[string]string{
				"good":    `echo "{\"ServerURL\":\"$server\",\"Username\":\"helped\",\"Secret\":\"for $server\"}"`,
				"token":   `echo '{"Username":"<token>","Secret":"tok"}'`,
				"none":    `echo 'credentials not found in native keychain'; exit 1`,
				"bad":     `echo 'the keychain is locked'; echo 'and stderr too' >&2; exit 1`,
				"odd":     `echo 'hello'`,
				"empty":   `echo '{}'`,
				"endless": `while :; do echo xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx || exit 1; done`,
			})
			if c.config != "" {
				writeConfig(t, dir, c.config)
			}
			if c.env != "" {
				t.Setenv("DOCKER_AUTH_CONFIG", c.env)
			}
			value, err := RegistryAuth(t.Context(), c.ref)
			if c.words != nil {
				if err == nil {
					t.Fatal("no error: got no error, want an error")
				}
				for _, w := range c.words {
					if !strings.Contains(err.Error(), w) {
						t.Errorf("%q lacks %q", err, w)
					}
				}
				if strings.Contains(err.Error(), basic) {
					t.Errorf("%v shows a password, want an error without %q", err, basic)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if c.want == (registry.AuthConfig{}) {
				if value != "" {
					t.Errorf("credentials %q, want none", value)
				}
				return
			}
			got, err := authconfig.Decode(value)
			if err != nil {
				t.Fatal(err)
			}
			if *got != c.want {
				t.Errorf("%+v, want %+v", *got, c.want)
			}
		})
	}
}

// TestRegistryAuthOfOptions: the configuration directory of the options counts.
func TestRegistryAuthOfOptions(t *testing.T) {
	fakeHome(t)
	dir := t.TempDir()
	writeConfig(t, dir, `{"auths":{"r.example":{"identitytoken":"t"}}}`)
	if value, err := RegistryAuth(t.Context(), "r.example/x"); err != nil || value != "" {
		t.Errorf("without the directory: %q, %v, want no error, value empty", value, err)
	}
	if value, err := (ClientOptions{ConfigDir: dir}).registryAuth(t.Context(), "r.example/x"); err != nil || value == "" {
		t.Errorf("with the directory: %q, %v, want no error, value not empty", value, err)
	}
}

// TestHelperThatHangs: a helper that never answers ends when its caller gives up.
func TestHelperThatHangs(t *testing.T) {
	dir := fakeHome(t)
	writeConfig(t, dir, `{"credsStore":"hangs"}`)
	fifo := filepath.Join(t.TempDir(), "started")
	helpers(t, map[string]string{"hangs": "echo started > " + fifo + "\nexec sleep 1000\n"})
	if out, err := exec.Command("mkfifo", fifo).CombinedOutput(); err != nil {
		t.Fatalf("mkfifo: %v: %s", err, out)
	}
	ctx, cancel := context.WithCancel(t.Context())
	heard := make(chan error, 1)
	go func() {
		_, err := os.ReadFile(fifo)
		cancel()
		heard <- err
	}()
	if _, err := RegistryAuth(ctx, "r.example/x"); !errors.Is(err, context.Canceled) {
		t.Errorf("%v, want context.Canceled", err)
	}
	if err := <-heard; err != nil {
		t.Error(err)
	}
}
