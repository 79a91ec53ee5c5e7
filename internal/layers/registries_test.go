package layers

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/llmsandbox/llmsandbox/backend"
	"github.com/llmsandbox/llmsandbox/internal/egress"
	"github.com/llmsandbox/llmsandbox/internal/language"
)

func TestDigestDir(t *testing.T) {
	dir := t.TempDir()
	digest := func() string {
		t.Helper()
		d, err := digestDir(t.Context(), dir)
		if err != nil {
			t.Fatal(err)
		}
		return d
	}
	if _, err := digestDir(t.Context(), dir); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("an empty directory: %v, want fs.ErrNotExist", err)
	}
	write := func(name, text string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	seen := map[string]bool{}
	for _, change := range []func(){
		func() { write("a", "x") }, func() { write("a", "y") }, func() { write("b", "") }, func() { write("b", "y") },
		func() { os.Rename(filepath.Join(dir, "b"), filepath.Join(dir, "c")) },
	} {
		change()
		if d := digest(); seen[d] || d != digest() {
			t.Errorf("digest %s again, or not again, want seen[d] = false, d = digest()", d)
		} else {
			seen[d] = true
		}
	}
	before := digest()
	if err := os.Symlink("/etc/passwd", filepath.Join(dir, "link")); err != nil {
		t.Fatal(err)
	}
	if digest() != before {
		t.Errorf("a link counts, which is not copied: digest() = %v, want digest = %v", digest(), before)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := digestDir(ctx, dir); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

func TestHostTools(t *testing.T) {
	ask := hostTools(t.Context())
	if out, err := ask.Program("sh", "-c", "echo said; echo loud >&2"); err != nil || string(out) != "said\n" {
		t.Errorf("%q, %v, want no error, out = \"said\\n\"", out, err)
	}
	if _, err := ask.Program("no-such-tool-anywhere"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("missing: %v, want fs.ErrNotExist", err)
	}
	if _, err := ask.Program("sh", "-c", "echo why >&2; exit 3"); err == nil || !strings.Contains(err.Error(), "why") {
		t.Errorf("failing: %v, want an error containing \"why\"", err)
	}
	if _, err := ask.Program("head", "-c", "5000000", "/dev/zero"); err == nil || !strings.Contains(err.Error(), "more than") {
		t.Errorf("endless: %v, want an error containing \"more than\"", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := hostTools(ctx).Program("sleep", "60"); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v, want context.Canceled", err)
	}
	path := filepath.Join(t.TempDir(), "conf")
	if err := os.WriteFile(path, []byte("text"), 0o600); err != nil {
		t.Fatal(err)
	}
	if data, err := ask.File(path); err != nil || string(data) != "text" {
		t.Errorf("%q, %v, want no error, data = \"text\"", data, err)
	}
	for _, bad := range []string{path + ".not", filepath.Dir(path), "/dev/zero"} {
		if _, err := ask.File(bad); err == nil {
			t.Errorf("%s was read, want an error", bad)
		}
	}
}

func TestRegistryPolicy(t *testing.T) {
	for name, c := range map[string]struct {
		urls []string
		ok   bool
	}{
		"https and http":       {[]string{"https://mirror.test/simple", "http://mirror.test:8080/x", "https://mirror.test/other"}, true},
		"an address":           {[]string{"http://10.1.2.3:81/", "https://[fd00::1]/x"}, true},
		"a port that is none":  {[]string{"https://mirror.test:99999/"}, false},
		"no URL":               {[]string{"https://mirror.test:x/"}, false},
		"a host that is none":  {[]string{"https:///simple"}, false},
		"a wildcard of a host": {[]string{"https://a b/"}, false},
	} {
		if _, err := registryPolicy(c.urls, c.urls); (err == nil) != c.ok {
			t.Errorf("%s: %v, want success = %v", name, err, c.ok)
		}
	}
}

func TestRefusalsAreExplained(t *testing.T) {
	attempts := []egress.Attempt{
		{Name: "mirror.test", Port: 443, Allowed: true},
		{Name: "elsewhere.test", Port: 443, Reason: "no rule"}, {Name: "elsewhere.test", Port: 443, Reason: "no rule"},
	}
	if got, want := explained("failed", attempts, nil), "failed\ncould not reach elsewhere.test:443: no rule"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	if got := explained("", nil, nil); got != "" {
		t.Errorf("%q, want empty", got)
	}
	got := explained("no", nil, []language.Credential{{URL: "https://mirror.test/", Header: "Authorization", Value: "SECRET"}})
	if !strings.Contains(got, "the credentials for https://mirror.test/ were not sent") || strings.Contains(got, "SECRET") {
		t.Errorf("credentials: %q, want got containing \"the credentials for https://mirror.test/ were not sent\", got without \"SECRET\"", got)
	}
	err := &Error{Language: "python", Libraries: []string{"a", "b"}, Status: "error", Output: "why"}
	if text := err.Error(); !strings.Contains(text, "a, b") || !strings.HasSuffix(text, "\nwhy") || !errors.Is(err, ErrInstall) {
		t.Errorf("%q, want text containing \"a, b\", text ending in \"\\nwhy\", ErrInstall", text)
	}
}

// Who is asked where libraries come from, and what an image may answer.
func TestRegistriesOfImages(t *testing.T) {
	urls := func(list ...string) language.Registries { return language.Registries{URLs: list} }
	for name, c := range map[string]struct {
		host     bool
		first    bool // Libraries.Inside
		machine  error
		answer   language.Registries
		wantHost bool
		err      error
	}{
		"the machine":                    {host: true, wantHost: true},
		"the machine, only it":           {host: true, first: true, wantHost: true},
		"the machine before an image":    {wantHost: true},
		"an image's own system":          {first: true, answer: urls("http://mirror.test/debian")},
		"a machine without the tool":     {machine: fs.ErrNotExist, answer: urls("https://mirror.test")},
		"a machine that says it wrongly": {machine: fs.ErrInvalid, err: fs.ErrInvalid},
		"no image and no tool":           {host: true, machine: fs.ErrNotExist, err: fs.ErrNotExist},
		"an address from an image":       {first: true, answer: urls("http://10.0.0.1/"), err: backend.ErrUnsupported},
		"an address as one number":       {first: true, answer: urls("http://2130706433/"), err: backend.ErrUnsupported},
		"an address in other bases":      {first: true, answer: urls("http://0x7f.1/"), err: backend.ErrUnsupported},
		"an address in brackets":         {first: true, answer: urls("http://[fd00::1]/"), err: backend.ErrUnsupported},
	} {
		t.Run(name, func(t *testing.T) {
			inside := language.Ask{Home: "inside"}
			host := urls("https://host.test")
			q := &Libraries{language: &language.Language{Libraries: &language.Libraries{
				Inside: c.first,
				Registries: func(ask language.Ask) (language.Registries, error) {
					if ask.Home == "inside" {
						return c.answer, nil
					}
					if c.machine != nil {
						return language.Registries{}, fmt.Errorf("ask: %w", c.machine)
					}
					return host, nil
				},
			}}}
			r, trusted, err := q.registries(q.machineRegistries(t.Context()), inside, c.host)
			if !errors.Is(err, c.err) {
				t.Fatalf("%+v, %v, %v, want %v", r, trusted, err, c.err)
			}
			// An image is trusted with what the machine names, and with nothing else.
			if slices.Contains(trusted, "https://host.test") != (c.machine == nil) && err == nil {
				t.Errorf("trusted: %q, want https://host.test in it: %v", trusted, c.machine == nil)
			}
			if err == nil && c.wantHost != strings.Contains(fmt.Sprint(r.URLs), "host.test") {
				t.Errorf("%q, want host.test in it: %v", r.URLs, c.wantHost)
			}
		})
	}
}

func TestPackageHosts(t *testing.T) {
	from := func(err error, urls ...string) *language.Language {
		return &language.Language{Name: "some", Libraries: &language.Libraries{Registries: func(language.Ask) (language.Registries, error) {
			return language.Registries{URLs: urls}, err
		}}}
	}
	ctx := context.Background()
	hosts, err := PackageHosts(ctx, []*language.Language{
		{Name: "none"}, from(nil, "https://a.test/simple", "http://b.test:8080/"), from(fmt.Errorf("x: %w", fs.ErrNotExist)), from(nil, "http://a.test/", "https://a.test/other"),
	})
	want := []RegistryHost{{"a.test", 443}, {"b.test", 8080}, {"a.test", 80}}
	if diff := cmp.Diff(want, hosts); diff != "" || err != nil {
		t.Errorf("%v, differs (-want +got):\n%s", err, diff)
	}
	if _, err := PackageHosts(ctx, []*language.Language{from(nil, "https://a.test/"), from(errors.New("broken"))}); err == nil || !strings.Contains(err.Error(), "some come from: broken") {
		t.Errorf("a tool that is configured wrong: %v, want its error", err)
	}
	if _, err := PackageHosts(ctx, []*language.Language{{Name: "none"}}); !errors.Is(err, backend.ErrUnsupported) {
		t.Errorf("no tool: %v, want ErrUnsupported", err)
	}
}

func TestSourceHosts(t *testing.T) {
	for text, want := range map[string]string{
		"": "",
		"deb http://deb.example.org/debian trixie main\n# deb http://no.example.org/ x\ndeb [signed-by=/k] https://user:secret@Sec.example.org:8443/x trixie main": "deb.example.org:80 Sec.example.org:8443",
		"Types: deb\nURIs: https://a.example.org/debian/ https://b.example.org\nSuites: x\n":                                                                       "a.example.org:443 b.example.org:443",
		"http://dl.example.org/alpine/v3/main\nhttp://dl.example.org/alpine/v3/community\n@edge http://e.example.org/x":                                            "dl.example.org:80 e.example.org:80",
		"http://127.0.0.1/x http://[::1]/x http://2130706433/ http://0x7f.1 http://1.2 http://a.org:0 file:///x cdrom:x http://*.org http://a.org:x/":              "",
		"http://a.org:99999/ http://b.org": "b.org:80",
		"https://b.org\x00/ http://%":      "",
	} {
		var got []string
		for _, h := range SourceHosts([]byte(text)) {
			got = append(got, h.String())
		}
		if strings.Join(got, " ") != want {
			t.Errorf("%q names %q, want %s", text, got, want)
		}
	}
}

// FuzzSourceHosts wants that every host is a rule for one name, whatever an image says.
func FuzzSourceHosts(f *testing.F) {
	f.Add([]byte("deb http://deb.example.org/debian trixie main\nURIs: https://a.example.org:8443/x # c"))
	f.Fuzz(func(t *testing.T, text []byte) {
		for _, h := range SourceHosts(text) {
			if _, err := egress.ParsePolicy("allow", []string{h.String()}); err != nil || strings.ContainsAny(h.String(), "*/ ") {
				t.Errorf("%q: %v", h, err)
			}
		}
	})
}
