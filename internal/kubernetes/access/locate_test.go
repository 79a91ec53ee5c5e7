package access

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/llmsandbox/llmsandbox/backend"
)

// kubeconfig writes a kubeconfig with a context of each name, whose cluster is
// https://NAME.example.com and whose namespace is "of-NAME", and returns its path.
func kubeconfig(t *testing.T, current string, contexts ...string) string {
	t.Helper()
	var b strings.Builder
	b.WriteString("apiVersion: v1\nkind: Config\n")
	if current != "" {
		b.WriteString("current-context: " + current + "\n")
	}
	b.WriteString("clusters:\n")
	for _, c := range contexts {
		b.WriteString("- name: " + c + "\n  cluster: {server: 'https://" + c + ".example.com'}\n")
	}
	b.WriteString("users:\n- name: u\n  user: {token: secret-of-u}\ncontexts:\n")
	for _, c := range contexts {
		b.WriteString("- name: " + c + "\n  context: {cluster: " + c + ", user: u, namespace: of-" + c + "}\n")
	}
	return write(t, b.String())
}

func write(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "config")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// nowhere takes away every place where a cluster could be found.
func nowhere(t *testing.T) (home string) {
	t.Helper()
	home = t.TempDir()
	t.Setenv("HOME", home)
	t.Setenv("USERPROFILE", home)
	t.Setenv("HOMEDRIVE", "")
	t.Setenv("KUBECONFIG", "")
	t.Setenv("KUBERNETES_SERVICE_HOST", "")
	t.Setenv("KUBERNETES_SERVICE_PORT", "")
	return home
}

func TestFind(t *testing.T) {
	for _, c := range []struct {
		name              string
		set               func(t *testing.T, home string) Options
		server, namespace string
		source            string
	}{
		{"by option", func(t *testing.T, _ string) Options {
			t.Setenv("KUBECONFIG", kubeconfig(t, "other", "other"))
			return Options{Kubeconfig: kubeconfig(t, "a", "a", "b")}
		}, "https://a.example.com", "of-a", `the context "a" of `},
		{"by KUBECONFIG", func(t *testing.T, _ string) Options {
			t.Setenv("KUBECONFIG", kubeconfig(t, "a", "a"))
			return Options{}
		}, "https://a.example.com", "of-a", `the context "a" of `},
		{"by several files, of which one is not there", func(t *testing.T, _ string) Options {
			list := []string{kubeconfig(t, "", "a"), filepath.Join(t.TempDir(), "nothing"), kubeconfig(t, "b", "b")}
			t.Setenv("KUBECONFIG", strings.Join(list, string(os.PathListSeparator)))
			return Options{}
		}, "https://b.example.com", "of-b", ", "},
		{"by the usual place", func(t *testing.T, home string) Options {
			if err := os.MkdirAll(filepath.Join(home, ".kube"), 0o700); err != nil {
				t.Fatal(err)
			}
			if err := os.Rename(kubeconfig(t, "a", "a"), filepath.Join(home, ".kube", "config")); err != nil {
				t.Fatal(err)
			}
			return Options{}
		}, "https://a.example.com", "of-a", ".kube"},
		{"another context", func(t *testing.T, _ string) Options {
			return Options{Kubeconfig: kubeconfig(t, "a", "a", "b"), Context: "b"}
		}, "https://b.example.com", "of-b", `"b"`},
		{"another namespace", func(t *testing.T, _ string) Options {
			return Options{Kubeconfig: kubeconfig(t, "a", "a"), Namespace: "mine"}
		}, "https://a.example.com", "mine", `"a"`},
		{"no namespace", func(t *testing.T, _ string) Options {
			return Options{Kubeconfig: write(t, "{clusters: [{name: c, cluster: {server: 'https://c'}}], contexts: [{name: c, context: {cluster: c}}], current-context: c}")}
		}, "https://c", "default", `"c"`},
	} {
		t.Run(c.name, func(t *testing.T) {
			o := c.set(t, nowhere(t))
			got, err := Find(o)
			if err != nil {
				t.Fatal(err)
			}
			if got.Server != c.server || got.Namespace != c.namespace || !strings.Contains(got.Source, c.source) || strings.Contains(got.Source, "secret") {
				t.Errorf("server %q, namespace %q, source %q, want Server = %q, Namespace = %q, Source containing %q, Source without \"secret\"", got.Server, got.Namespace, got.Source, c.server, c.namespace, c.source)
			}
			if got.Config.QPS != DefaultQPS || got.Config.Burst != DefaultBurst || !strings.HasPrefix(got.Config.UserAgent, "llmsandbox/") || got.Client == nil {
				t.Errorf("%+v, want QPS = DefaultQPS, Burst = DefaultBurst, UserAgent beginning with \"llmsandbox/\", Client not nil", got.Config)
			}
		})
	}
}

func TestFindRefuses(t *testing.T) {
	const plugin = "{clusters: [{name: c, cluster: {server: 'https://c'}}], contexts: [{name: c, context: {cluster: c, user: u}}], current-context: c, users: [{name: u, user: {exec: {apiVersion: client.authentication.k8s.io/v1, command: no-such-plugin, interactiveMode: IfAvailable, installHint: Get it from the administrator.}}}]}"
	for _, c := range []struct {
		name  string
		set   func(t *testing.T) Options
		kind  error
		words []string
	}{
		{"nothing at all", func(*testing.T) Options { return Options{} }, backend.ErrUnsupported, []string{"no kubeconfig", "service account", "KUBECONFIG"}},
		{"a context without a file", func(*testing.T) Options { return Options{Context: "a"} }, backend.ErrUnsupported, []string{`no context "a"`}},
		{"missing file", func(*testing.T) Options { return Options{Kubeconfig: "/no/such/file"} }, backend.ErrUnsupported, []string{"no kubeconfig at /no/such/file"}},
		{"KUBECONFIG of missing files", func(t *testing.T) Options { t.Setenv("KUBECONFIG", "/no/such/file"); return Options{} }, backend.ErrUnsupported, []string{"/no/such/file"}},
		{"no YAML", func(t *testing.T) Options { return Options{Kubeconfig: write(t, "{{")} }, backend.ErrInvalid, []string{"cannot be read", "yaml"}},
		{"a folder", func(t *testing.T) Options { return Options{Kubeconfig: t.TempDir()} }, backend.ErrInvalid, []string{"cannot be read"}},
		{"empty", func(t *testing.T) Options { return Options{Kubeconfig: write(t, "")} }, backend.ErrUnsupported, []string{"no contexts"}},
		{"unknown context", func(t *testing.T) Options {
			return Options{Kubeconfig: kubeconfig(t, "a", "b", "a"), Context: "x"}
		}, backend.ErrInvalid, []string{`no context "x"`, "a, b"}},
		{"no current context", func(t *testing.T) Options { return Options{Kubeconfig: kubeconfig(t, "", "a", "b")} }, backend.ErrInvalid, []string{"no current context", "a, b"}},
		{"no such cluster", func(t *testing.T) Options {
			return Options{Kubeconfig: write(t, "{contexts: [{name: c, context: {cluster: gone}}], current-context: c}")}
		}, backend.ErrInvalid, []string{`cluster "gone"`}},
		{"no such user", func(t *testing.T) Options {
			return Options{Kubeconfig: write(t, "{clusters: [{name: c, cluster: {server: 'https://c'}}], contexts: [{name: c, context: {cluster: c, user: gone}}], current-context: c}")}
		}, backend.ErrInvalid, []string{`user "gone"`}},
		{"missing authority file", func(t *testing.T) Options {
			return Options{Kubeconfig: write(t, "{clusters: [{name: c, cluster: {server: 'https://c', certificate-authority: /no/ca.crt}}], contexts: [{name: c, context: {cluster: c}}], current-context: c}")}
		}, backend.ErrInvalid, []string{"/no/ca.crt"}},
		{"damaged authority", func(t *testing.T) Options {
			return Options{Kubeconfig: write(t, "{clusters: [{name: c, cluster: {server: 'https://c', certificate-authority-data: bm8gUEVN}}], contexts: [{name: c, context: {cluster: c}}], current-context: c}")}
		}, backend.ErrInvalid, []string{"root certificates"}},
		{"damaged client certificate", func(t *testing.T) Options {
			return Options{Kubeconfig: write(t, "{clusters: [{name: c, cluster: {server: 'https://c'}}], contexts: [{name: c, context: {cluster: c, user: u}}], current-context: c, users: [{name: u, user: {client-certificate-data: bm8gUEVN, client-key-data: bm8gUEVN}}]}")}
		}, backend.ErrInvalid, []string{"PEM"}},
		{"missing plugin", func(t *testing.T) Options { return Options{Kubeconfig: write(t, plugin)} }, backend.ErrUnsupported, []string{`"no-such-plugin"`, "install it", "Get it from the administrator."}},
		{"bad namespace", func(t *testing.T) Options {
			return Options{Kubeconfig: kubeconfig(t, "a", "a"), Namespace: "Not/One"}
		}, backend.ErrInvalid, []string{`"Not/One"`, "namespace"}},
		{"negative limit", func(*testing.T) Options { return Options{QPS: -1} }, backend.ErrInvalid, []string{"negative"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			nowhere(t)
			got, err := Find(c.set(t))
			if err == nil {
				t.Fatalf("found %+v, want an error", got)
			}
			var typed *Error
			if !errors.Is(err, c.kind) || !errors.As(err, &typed) || typed.Fix == "" {
				t.Errorf("%#v: not of kind %v with a fix, want %v, an error of type %T, Fix not empty", err, c.kind, c.kind, typed)
			}
			for _, w := range c.words {
				if !strings.Contains(err.Error(), w) {
					t.Errorf("%q does not say %q", err, w)
				}
			}
		})
	}
}

// TestFileThatMayNotBeRead: only another user than root can be kept from reading.
func TestFileThatMayNotBeRead(t *testing.T) {
	if os.Geteuid() == 0 {
		t.Skip("root may read every file")
	}
	nowhere(t)
	file := kubeconfig(t, "a", "a")
	if err := os.Chmod(file, 0); err != nil {
		t.Fatal(err)
	}
	if _, err := Find(Options{Kubeconfig: file}); !errors.Is(err, backend.ErrUnsupported) || !strings.Contains(err.Error(), "may not be read") {
		t.Error(err)
	}
}

// TestPluginAsksNothing: what is on stdin belongs to the caller.
func TestPluginAsksNothing(t *testing.T) {
	nowhere(t)
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	c, err := Find(Options{Kubeconfig: write(t, "{clusters: [{name: c, cluster: {server: 'https://c'}}], contexts: [{name: c, context: {cluster: c, user: u}}], current-context: c, users: [{name: u, user: {exec: {apiVersion: client.authentication.k8s.io/v1, command: '"+self+"', interactiveMode: IfAvailable}}}]}")})
	if err != nil {
		t.Fatal(err)
	}
	if !c.Config.ExecProvider.StdinUnavailable {
		t.Error("the program may read stdin: c.Config.ExecProvider.StdinUnavailable = false, want true")
	}
}
