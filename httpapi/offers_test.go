package httpapi

import (
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/llmsandbox/llmsandbox"
	"github.com/llmsandbox/llmsandbox/internal/apitypes"
)

// TestOffers: templates and environments are told by name and by what is in them, and nothing is told of the server's files.
func TestOffers(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("LLMSANDBOX_CONFIG_DIR", dir)
	c := serve(t, Config{}).as(keyAReads)
	var got struct {
		Templates    []apitypes.Template
		Environments []apitypes.Environment
	}
	if c.want(http.StatusOK, &got, http.MethodGet, "/v1/templates", ""); got.Templates == nil || len(got.Templates) > 0 {
		t.Errorf("got %+v, want an empty list", got.Templates)
	}
	if err := llmsandbox.CreateTemplate("report", llmsandbox.Template{
		Language: "python", Env: map[string]string{"A": "b"}, Imports: []string{"json"}, Limits: llmsandbox.Limits{Timeout: time.Minute, Memory: llmsandbox.Unlimited},
		Network: llmsandbox.NetworkAllow, Allow: []string{"example.org:443"},
	}); err != nil {
		t.Fatal(err)
	}
	res, text := c.do(http.MethodGet, "/v1/templates", "")
	c.want(http.StatusOK, &got, http.MethodGet, "/v1/templates", "")
	want := []apitypes.Template{{
		Name: "report", Language: "python", Env: map[string]string{"A": "b"}, Imports: []string{"json"}, Limits: apitypes.RunLimits{Timeout: 60},
		Network: &apitypes.Network{Mode: llmsandbox.NetworkAllow, Allow: []string{"example.org:443"}},
	}}
	if !reflect.DeepEqual(got.Templates, want) || strings.Contains(text, dir) {
		t.Errorf("got %d %s, want %+v and no path", res.StatusCode, text, want)
	}
	c.want(http.StatusOK, &got, http.MethodGet, "/v1/environments", "")
	if len(got.Environments) != 1 || got.Environments[0].Name != llmsandbox.DataScience || !slices.ContainsFunc(got.Environments[0].Packages, func(p string) bool { return strings.HasPrefix(p, "numpy==") }) {
		t.Errorf("got %+v, want the environment that is built in", got.Environments)
	}
	files, err := filepath.Glob(filepath.Join(dir, "*", "report*"))
	if err != nil || len(files) != 1 {
		t.Fatalf("got %v, %v, want the template's file", files, err)
	}
	locks := filepath.Join(dir, "environments")
	for _, err := range []error{os.WriteFile(files[0], []byte("{"), 0o600), os.MkdirAll(locks, 0o700), os.WriteFile(filepath.Join(locks, "broken.toml"), []byte("?"), 0o600)} {
		if err != nil {
			t.Fatal(err)
		}
	}
	c = c.as(keyA)
	for _, r := range [][3]string{
		{http.MethodGet, "/v1/templates", ""}, {http.MethodGet, "/v1/environments", ""},
		{http.MethodPost, "/v1/sandboxes", `{"environment": "broken"}`}, {http.MethodPost, "/v1/run", `{"environment": "broken", "code": ""}`},
	} {
		if res, text := c.do(r[0], r[1], r[2]); res.StatusCode != http.StatusInternalServerError || strings.Contains(text, dir) {
			t.Errorf("%s %s: got %d %s, want a failure of the server without a path", r[1], r[2], res.StatusCode, text)
		}
	}
}

// TestPool: what is kept ready is told, and that nothing is.
func TestPool(t *testing.T) {
	var got apitypes.Pool
	none := serve(t, Config{})
	none.want(http.StatusOK, &got, http.MethodGet, "/v1/pool", "")
	if got.Languages == nil || len(got.Languages) > 0 || got.Kept != 0 || got.Ready != 0 {
		t.Errorf("got %+v, want nothing", got)
	}
	none.want(http.StatusOK, nil, http.MethodPost, "/v1/run", `{"language": "bash", "code": "true"}`)
	if none.want(http.StatusOK, &got, http.MethodGet, "/v1/pool", ""); got.Misses != 1 || got.Hits != 0 {
		t.Errorf("got %+v, want one program that waited", got)
	}
	warm := serve(t, Config{Warm: 1, WarmLanguages: []string{"sh"}})
	warm.want(http.StatusOK, &got, http.MethodGet, "/v1/pool", "")
	if !slices.Equal(got.Languages, []string{"bash"}) || got.Kept != 1 || got.Ready+got.Creating > 1 {
		t.Errorf("got %+v, want one for Bash", got)
	}
	warm.as("").want(http.StatusUnauthorized, nil, http.MethodGet, "/v1/pool", "")
}

// TestZygote: programs of Python are forked from one interpreter, and all else is as without it.
func TestZygote(t *testing.T) {
	c := serve(t, Config{Warm: 1, Zygote: true, Sandbox: llmsandbox.Options{Imports: []string{"decimal"}}})
	if err := c.server.Check(testContext(t)); err != nil {
		t.Fatal(err)
	}
	hashes := map[string]bool{}
	for _, key := range []string{keyA, keyA, keyB} {
		var res llmsandbox.Result
		c.as(key).want(http.StatusOK, &res, http.MethodPost, "/v1/run", `{"language": "python", "code": "import os, sys; print('decimal' in sys.modules, hash('x'), os.path.exists('left')); open('left', 'w')"}`)
		if !strings.HasPrefix(res.Stdout, "True ") || !strings.HasSuffix(res.Stdout, " False\n") {
			t.Errorf("got %+v, want a module that is there, and nobody's files", res)
		}
		hashes[res.Stdout] = true
	}
	if len(hashes) != 1 {
		t.Errorf("got %d interpreters, want 1", len(hashes))
	}
	path, _ := c.create(`{"language": "python"}`)
	var res llmsandbox.Result
	c.want(http.StatusOK, &res, http.MethodPost, path+"/run", `{"code": "print(hash('x'))"}`)
	if res.Status != llmsandbox.StatusOK || hashes["True "+strings.TrimSpace(res.Stdout)+" False\n"] {
		t.Errorf("got %+v, want an interpreter of its own for a sandbox that stays", res)
	}
}

// TestZygoteThatCannotBe: the server says before it serves that no program would run.
func TestZygoteThatCannotBe(t *testing.T) {
	c := serve(t, Config{Zygote: true, Sandbox: llmsandbox.Options{Resettable: true}})
	if err := c.server.Check(testContext(t)); !errors.Is(err, llmsandbox.ErrUnsupported) {
		t.Errorf("got %v, want ErrUnsupported", err)
	}
}
