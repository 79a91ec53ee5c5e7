package httpapi

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/llmsandbox/llmsandbox"
	"github.com/llmsandbox/llmsandbox/backend/local"
	"github.com/llmsandbox/llmsandbox/security"
)

// operator has the options of an operator: hosts, an own secret and a policy.
func operator(t *testing.T) llmsandbox.Options {
	t.Helper()
	policy, err := security.Preset("production")
	if err != nil {
		t.Fatal(err)
	}
	checker, err := security.Compile(policy)
	if err != nil {
		t.Fatal(err)
	}
	return llmsandbox.Options{
		Network: llmsandbox.Network{Mode: llmsandbox.NetworkAllow, Allow: []string{"example.org:443"}},
		Secrets: []llmsandbox.Secret{{Name: "OWN", Value: "value-of-the-operator", Hosts: []string{"example.org:443"}}},
		Policy:  llmsandbox.Policy{Checker: checker},
	}
}

// TestOptions: what a request asks for, its sandbox has.
func TestOptions(t *testing.T) {
	t.Setenv("LLMSANDBOX_CONFIG_DIR", t.TempDir())
	if err := llmsandbox.CreateTemplate("of-bash", llmsandbox.Template{Language: "bash", Env: map[string]string{"A": "template", "B": "template"}}); err != nil {
		t.Fatal(err)
	}
	own := operator(t)
	own.Policy = llmsandbox.Policy{}
	c := serve(t, Config{Sandbox: own})
	const network = `"network": {"mode": "allow", "allow": ["example.org:443"]}`
	for name, test := range map[string]struct{ body, code, stdout string }{
		"imports":       {`{"imports": ["json.tool"]}`, "import sys; print('json.tool' in sys.modules)", "True\n"},
		"template":      {`{"template": "of-bash", "env": {"A": "request"}}`, "echo $A $B", "request template\n"},
		"workdir":       {`{"language": "bash", "workdir": "/srv/project"}`, "pwd; echo x >file; cat /srv/project/file", "/srv/project\nx\n"},
		"secrets":       {`{"language": "bash", "secrets": [{"name": "TOKEN", "value": "value-of-the-client", "hosts": ["example.org:443"]}], ` + network + `}`, `[[ -n $TOKEN && $TOKEN != *value* && -n $OWN && $OWN != *value* ]] && echo placeholders`, "placeholders\n"},
		"best effort":   {`{"language": "bash", "best_effort": true}`, "echo x", "x\n"},
		"nothing of it": {`{"language": "bash"}`, "pwd; echo $OWN$TOKEN$A", "/sandbox\n\n"},
	} {
		t.Run(name, func(t *testing.T) {
			path, _ := c.create(test.body)
			var res result
			c.want(http.StatusOK, &res, http.MethodPost, path+"/run", fmt.Sprintf(`{"code": %q}`, test.code))
			if res.Status != llmsandbox.StatusOK || res.Stdout != test.stdout {
				t.Errorf("got %+v, want %q", res, test.stdout)
			}
		})
	}
}

// TestArtifactOptions: they hold for all of a sandbox's runs, also with the next server.
func TestArtifactOptions(t *testing.T) {
	sandboxes := local.New(&local.Options{StateDir: t.TempDir()})
	c, next := serve(t, Config{Sandbox: llmsandbox.Options{Backend: sandboxes}}), serve(t, Config{Sandbox: llmsandbox.Options{Backend: sandboxes}})
	for body, want := range map[string]int{
		`{"language": "bash"}`: 3, `{"language": "bash", "artifacts": {"off": true}}`: 0, `{"language": "bash", "artifacts": {"max_count": 2}}`: 2,
		`{"language": "bash", "artifacts": {"max_bytes": 4}}`: 1,
	} {
		path, _ := c.create(body)
		for _, s := range []*client{c, next} {
			var res result
			s.want(http.StatusOK, &res, http.MethodPost, path+"/run", `{"code": "mkdir -p artifacts; for i in 1 2 3; do echo 12 >artifacts/$i.txt; done"}`)
			if len(res.Artifacts) != want {
				t.Errorf("%s: got %d artifacts, want %d", body, len(res.Artifacts), want)
			}
		}
	}
}

// TestRights: where the operator lets code be root, a request has less or as much.
func TestRights(t *testing.T) {
	if runtime.GOOS == "linux" && os.Geteuid() != 0 {
		t.Skip("sandboxes of this machine have users only where root opens them")
	}
	c := serve(t, Config{Sandbox: llmsandbox.Options{Sudo: true, WritableRoot: true}})
	for body, want := range map[string]string{
		`{"language": "bash"}`:                                        "1000\n",
		`{"language": "bash", "user": "root"}`:                        "0\n",
		`{"language": "bash", "user": "2000:2000"}`:                   "2000\n",
		`{"language": "bash", "sudo": true, "writable_root": true}`:   "1000\n",
		`{"language": "bash", "writable_root": true, "user": "root"}`: "0\n",
	} {
		path, _ := c.create(body)
		var res result
		c.want(http.StatusOK, &res, http.MethodPost, path+"/run", `{"code": "id -u"}`)
		if res.Stdout != want {
			t.Errorf("%s: got %+v, want %q", body, res, want)
		}
	}
}

// TestOptionsRefused: what is more than the operator allows, or cannot be, is refused, and no answer, log or event has a secret or a path of the server's.
func TestOptionsRefused(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("LLMSANDBOX_CONFIG_DIR", dir)
	for name, template := range map[string]llmsandbox.Template{
		"large":   {Limits: llmsandbox.Limits{Memory: 1 << 40}},
		"reaches": {Network: llmsandbox.NetworkAllow, Allow: []string{"example.com:443"}},
		"image":   {Image: "node:22"},
		"ruby":    {Language: "ruby"},
		"broken":  {},
	} {
		if err := llmsandbox.CreateTemplate(name, template); err != nil {
			t.Fatal(err)
		}
	}
	files, err := filepath.Glob(filepath.Join(dir, "*", "broken*"))
	if err != nil || len(files) != 1 {
		t.Fatalf("got %v, %v, want the template's file", files, err)
	}
	if err := os.WriteFile(files[0], []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	var log bytes.Buffer
	var events []AuditEvent
	own := operator(t)
	own.Artifacts.MaxCount = 10
	c := serve(t, Config{
		Sandbox: own, Log: slog.New(slog.NewTextHandler(&log, nil)),
		Audit: func(_ context.Context, more []AuditEvent) error { events = append(events, more...); return nil },
	})
	const network = `, "network": {"mode": "allow", "allow": ["example.org:443"]}`
	secret := func(name, value, host, more string) string {
		return fmt.Sprintf(`{"language": "bash", "secrets": [{"name": %q, "value": "value-of-the-client%s", "hosts": [%q]}]%s}`, name, value, host, more)
	}
	for body, want := range map[string]string{
		`{"template": "large"}`:                                                   "403 not_allowed limits.memory_bytes",
		`{"template": "reaches"}`:                                                 "403 not_allowed example.com",
		`{"template": "image"}`:                                                   "403 not_allowed image",
		`{"template": "ruby", "language": "bash"}`:                                "422 invalid ruby",
		`{"template": "none"}`:                                                    "422 template_not_found none",
		`{"template": "broken"}`:                                                  "500 internal log",
		`{"template": "../x"}`:                                                    "422 invalid body.template",
		`{"imports": ["subprocess"]}`:                                             "403 refused subprocess",
		`{"imports": ["json", "a b"]}`:                                            "422 invalid modules",
		`{"imports": ["none_of_this_name"]}`:                                      "422 invalid none_of_this_name",
		`{"imports": ["json"], "language": "bash"}`:                               "422 unsupported modules",
		`{"workdir": "project", "language": "bash"}`:                              "422 invalid project",
		`{"workdir": "/proc/self", "language": "bash"}`:                           "422 invalid /proc",
		`{"user": "root", "language": "bash"}`:                                    "403 not_allowed user",
		`{"user": "0", "language": "bash"}`:                                       "403 not_allowed user",
		`{"user": "1000:0", "language": "bash"}`:                                  "403 not_allowed user",
		`{"sudo": true, "language": "bash"}`:                                      "403 not_allowed sudo",
		`{"writable_root": true, "language": "bash"}`:                             "403 not_allowed writable_root",
		`{"artifacts": {"max_count": 11}, "language": "bash"}`:                    "403 not_allowed artifacts.max_count: not allowed by this server: at most 10",
		`{"artifacts": {"max_bytes": 67108865}, "language": "bash"}`:              "403 not_allowed artifacts.max_bytes",
		`{"lifetime_seconds": 1e7, "language": "bash"}`:                           "403 not_allowed lifetime_seconds: not allowed by this server: at most 86400",
		`{"mounts": ["/etc"]}`:                                                    "422 invalid body.mounts",
		`{"gpus": "all"}`:                                                         "422 invalid body.gpus",
		secret("TOKEN", "", "example.org:443", ""):                                "422 invalid no network",
		secret("TOKEN", "", "example.com", network):                               "422 invalid example.com",
		secret("TOKEN", "", "*", network):                                         "422 invalid name them",
		secret("TOKEN", `\n`, "example.org:443", network):                         "422 invalid control character",
		secret("TOKEN", strings.Repeat("x", 4096), "example.org", network):        "422 invalid body.secrets",
		secret("1", "", "example.org:443", network):                               "422 invalid name",
		secret("OWN", "", "example.org:443", network):                             "422 invalid twice",
		secret("TOKEN", "", "example.org:443", network+`, "env": {"TOKEN": "x"}`): "422 invalid TOKEN",
		`{"secrets": [{"name": "TOKEN", "value": ["value-of-the-client"], "hosts": "value-of-the-client"}]}`: "422 invalid body.secrets",
	} {
		res, text := c.do(http.MethodPost, "/v1/sandboxes", body)
		parts := strings.SplitN(want, " ", 3)
		if fmt.Sprint(res.StatusCode) != parts[0] || !strings.Contains(text, `"code":"`+parts[1]+`"`) || !strings.Contains(text, parts[2]) {
			t.Errorf("%s: got %d %s, want %s", body, res.StatusCode, text, want)
		}
		if strings.Contains(text, "value-of") || strings.Contains(text, dir) {
			t.Errorf("%s: got %s, want neither a secret nor a path of the server", body, text)
		}
	}
	c.stop()
	if told := log.String() + fmt.Sprintf("%+v", events); strings.Contains(told, "value-of") || !strings.Contains(told, "broken") {
		t.Errorf("got %s, want the broken template and no secret", told)
	}
}
