package golang

import (
	"io/fs"
	"slices"
	"strings"
	"testing"

	"github.com/llmsandbox/llmsandbox/internal/language"
	"github.com/llmsandbox/llmsandbox/internal/language/registries"
	"github.com/llmsandbox/llmsandbox/internal/language/registries/registrytest"
)

func TestCheck(t *testing.T) {
	good := map[string]string{"example.org/m@latest": "example.org/m"}
	for _, s := range []string{"golang.org/x/crypto", "github.com/google/uuid@v1.6.0", "gopkg.in/yaml.v3", "github.com/Azure/azure-sdk-for-go/sdk/azcore@v1",
		"golang.org/x/text/language@v0.14", "a.b/c@v2.0.0-20200101000000-abcdefabcdef+incompatible", "a.b/c@0123abc", "a.b/~c/_d"} {
		good[s] = s
	}
	registrytest.Check(t, check, good, "fmt", "golang.org", "golang.org/", "/golang.org/x", "golang.org/x/", "golang.org//x", "a.b/.c", "a.b/c.", "a.b/-c", "A.b/c",
		"a.b/c@", "a.b/c@main", "a.b/c@none", "a.b/c@>=v1", "a.b/c@upgrade", "a.b/c@v1@v2", "a.b/...", "a.b/c/...", "a.b:80/c", "-a.b/c", "a.b/c=../x", "all", "a.b/c@v1.2.3.4")
}

func FuzzCheck(f *testing.F) {
	registrytest.Fuzz(f, check, "golang.org/x/crypto", "github.com/google/uuid@v1.6.0", "a.b/c@0123abc")
}

func TestRegistries(t *testing.T) {
	const ask, pem = "go env -json GOPROXY GOSUMDB GONOSUMDB GOPRIVATE GONOPROXY", "-----BEGIN CERTIFICATE-----\n"
	empty := []string{"GONOSUMDB=", "GOPRIVATE=", "GONOPROXY="}
	says := func(env string) registrytest.Machine {
		return registrytest.Machine{Programs: map[string]string{ask: env}}
	}
	registrytest.Registries(t, findRegistries, map[string]registrytest.Case{
		"a proxy and a database": {Machine: says(`{"GOPROXY":"https://p.test,direct","GOSUMDB":"s.test"}`),
			Want: language.Registries{URLs: []string{"https://p.test", "https://s.test"}, Env: append([]string{"GOPROXY=https://p.test", "GOSUMDB=s.test"}, empty...)}},
		"a database with a key at an address": {Machine: says(`{"GOPROXY":"https://p.test","GOSUMDB":"s.test+k https://d.test/s"}`),
			Want: language.Registries{URLs: []string{"https://p.test", "https://d.test/s"}, Env: append([]string{"GOPROXY=https://p.test", "GOSUMDB=s.test+k https://d.test/s"}, empty...)}},
		"separators, and what comes after off": {Machine: says(`{"GOPROXY":"file:///x,https://u:p@a.test|direct,https://b.test,off,https://c.test","GOSUMDB":"off"}`),
			Want: language.Registries{URLs: []string{"https://a.test", "https://b.test"}, Env: append([]string{"GOPROXY=https://a.test|https://b.test", "GOSUMDB=off"}, empty...),
				Credentials: []language.Credential{{URL: "https://a.test", Header: "Authorization", Value: "Basic dTpw"}}}},
		"only repositories": {Machine: says(`{"GOPROXY":"direct"}`), Err: registries.ErrConfiguration},
		"no URL":            {Machine: says(`{"GOPROXY":"x"}`), Err: registries.ErrConfiguration},
		"no JSON":           {Machine: says(`x`), Err: registries.ErrConfiguration},
		"no go":             {Err: fs.ErrNotExist},
	})
	got, err := findRegistries(registrytest.Machine{Programs: map[string]string{ask: `{"GOPROXY":"https://p.test"}`}, Vars: map[string]string{"SSL_CERT_FILE": "/ca"},
		Texts: map[string]string{"/ca": pem}}.Ask())
	if err != nil || len(got.Files) != 1 || !slices.Contains(got.Env, "SSL_CERT_FILE="+registries.CA) {
		t.Errorf("%+v, %v, want no error, len(got.Files) = 1, Env containing %v", got, err, "SSL_CERT_FILE="+registries.CA)
	}
}

func TestInstall(t *testing.T) {
	plan, err := install(language.InstallSource{Libraries: []string{"a.b/c", "a.b/d@v1"}, Dir: "/tmp/.lib-x", TempDir: "/tmp", Local: "/l", Program: func(a ...string) string { return a[0] }})
	if err != nil || strings.Join(plan.Steps[0].Argv, " ") != "go get a.b/c/... a.b/d/...@v1" || string(plan.Files[0].Data) != "module libraries.invalid/lib-x\n" {
		t.Errorf("%+v, %v, want no error, strings.Join(plan.Steps[0].Argv, \" \") = \"go get a.b/c/... a.b/d/...@v1\", Data = \"module libraries.invalid/lib-x\\n\"", plan, err)
	}
	if !slices.Contains(plan.Steps[0].Env, "GOPROXY=file:///l") {
		t.Errorf("%q, want it to contain \"GOPROXY=file:///l\"", plan.Steps[0].Env)
	}
}

func TestPlanWithLibraries(t *testing.T) {
	src := language.Source{Code: []byte("package main\n"), RunID: "1", Workdir: "/w", TempDir: "/tmp", Program: func(a ...string) string { return a[0] }}
	for want, dirs := range map[string][]string{"GOMODCACHE=/a/mod": {"/a"}, "GOPROXY=file:///a/mod/cache/download,file:///b/mod/cache/download,off": {"/a", "/b"}} {
		src.Libraries = dirs
		p, err := plan(src)
		if err != nil || len(p.Steps) != 3 || strings.Join(p.Steps[0].Argv, " ") != "go work init . "+strings.Join(dirs, " ") || !p.Steps[0].Compile {
			t.Fatalf("%+v, %v, want no error, len(p.Steps) = 3, strings.Join(p.Steps[0].Argv, \" \") = \"go work init . \"+strings.Join(dirs, \" \"), Compile true", p.Steps, err)
		}
		if env := p.Steps[1].Env; !slices.Contains(env, want) || !slices.Contains(env, "GOWORK=/tmp/.run-1.work") || !slices.Contains(p.Cleanup, "/tmp/.run-1.work") {
			t.Errorf("%q, %q, want env containing %v, env containing \"GOWORK=/tmp/.run-1.work\", Cleanup containing \"/tmp/.run-1.work\"", env, p.Cleanup, want)
		}
		seen := map[string]bool{}
		for _, kv := range p.Steps[1].Env {
			name, _, _ := strings.Cut(kv, "=")
			if seen[name] {
				t.Errorf("%s comes twice: %q, want once", name, p.Steps[1].Env)
			}
			seen[name] = true
		}
	}
}

func TestLibraryName(t *testing.T) {
	for in, want := range map[string]string{"golang.org/x/text@v0.1.0": "golang.org/x/text", "golang.org/x/text": "golang.org/x/text"} {
		if got := libraryName(in); got != want {
			t.Errorf("%s: %s, want %s", in, got, want)
		}
	}
}
