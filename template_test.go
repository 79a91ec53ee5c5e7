package llmsandbox

import (
	"context"
	"errors"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

func TestDecodeTemplate(t *testing.T) {
	for _, c := range []struct {
		name, text, says string // empty: it is valid
		is               error
	}{
		{"the least", `{"version":1}`, "", nil},
		{"an alias", `{"version":1,"language":"js"}`, "", nil},
		{"all", `{"version":1,"language":"python","image":"python:3.13-slim","environment":"data-science","libraries":["six>=1"],"imports":["json","os.path"],` +
			`"env":{"A":"B"},"limits":{"memory_bytes":1073741824,"cpus":0.5,"pids":-1,"disk_bytes":104857600,"timeout_ns":1000000000,"output_bytes":1},"network":"allow","allow":["example.org:443"]}`, "", nil},
		{"nothing", ``, "unexpected end", ErrInvalid},
		{"no object", `[]`, "cannot unmarshal", ErrInvalid},
		{"more behind it", `{"version":1}{}`, "after top-level value", ErrInvalid},
		{"no version", `{"language":"python"}`, "version 0 of the format", ErrInvalid},
		{"a newer version with a new field", `{"version":2,"gpu":1}`, "version 2 of the format is not known, only 1", ErrInvalid},
		{"an unknown field", `{"version":1,"code":"print(1)"}`, `unknown field "code"`, ErrInvalid},
		{"an unknown limit", `{"version":1,"limits":{"ram":1}}`, `unknown field "ram"`, ErrInvalid},
		{"secrets", `{"version":1,"secrets":[]}`, `unknown field "secrets"`, ErrInvalid},
		{"mounts", `{"version":1,"mounts":[]}`, `unknown field "mounts"`, ErrInvalid},
		{"an unknown language", `{"version":1,"language":"cobol"}`, "cobol", ErrUnknownLanguage},
		{"a limit that is too small", `{"version":1,"limits":{"memory_bytes":5}}`, "Limits.Memory is 5", ErrInvalid},
		{"a limit of another type", `{"version":1,"limits":{"memory_bytes":"1g"}}`, "memory_bytes", ErrInvalid},
		{"a lock's path", `{"version":1,"environment":"/x/web.toml"}`, "llmsandbox setup NAME --from FILE", ErrInvalid},
		{"no name of an environment", `{"version":1,"environment":"A B"}`, "A B", ErrInvalid},
		{"a library that is an option", `{"version":1,"libraries":["--index-url=x"]}`, "--index-url", ErrInvalid},
		{"no module", `{"version":1,"imports":["a b"]}`, "a b", ErrInvalid},
		{"imports of another language", `{"version":1,"language":"ruby","imports":["json"]}`, "Ruby", ErrUnsupported},
		{"no variable", `{"version":1,"env":{"A=B":""}}`, "A=B", ErrInvalid},
		{"no network rule", `{"version":1,"network":"allow","allow":["@@"]}`, "@@", ErrInvalid},
		{"rules without a network", `{"version":1,"allow":["example.org"]}`, "the mode is none", ErrInvalid},
		{"an unknown network", `{"version":1,"network":"open"}`, "open", ErrInvalid},
		{"no image", `{"version":1,"image":"A B"}`, "A B", ErrImageNotFound},
		{"a path of an image that is not there", `{"version":1,"image":"./nowhere"}`, "nowhere", ErrImageNotFound},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, err := decodeTemplate([]byte(c.text))
			if c.says == "" {
				if err != nil {
					t.Fatalf("%v, want nil", err)
				}
				again(t, got)
				return
			}
			if !errors.Is(err, c.is) || !strings.Contains(err.Error(), c.says) {
				t.Errorf("%v, want %v, an error containing %q", err, c.is, c.says)
			}
		})
	}
}

// again encodes a template and decodes it.
func again(t interface {
	Fatal(...any)
	Errorf(string, ...any)
}, want Template) {
	text, err := want.encode()
	if err != nil {
		t.Fatal(err)
	}
	got, err := decodeTemplate(text)
	if err != nil || !sameTemplate(got, want) {
		t.Errorf("%+v, %v, want %+v; of\n%s", got, err, want, text)
	}
}

// sameTemplate takes empty for nil.
func sameTemplate(a, b Template) bool {
	same := slices.Equal(a.Libraries, b.Libraries) && slices.Equal(a.Imports, b.Imports) && slices.Equal(a.Allow, b.Allow) && maps.Equal(a.Env, b.Env)
	for _, t := range []*Template{&a, &b} {
		t.Libraries, t.Imports, t.Allow, t.Env = nil, nil, nil, nil
	}
	return same && reflect.DeepEqual(a, b)
}

// FuzzTemplate: what is accepted is written as it was read, and holds no path of this machine.
func FuzzTemplate(f *testing.F) {
	f.Add([]byte(`{"version":1,"language":"python","environment":"data-science","libraries":["six>=1"],"imports":["json"],"env":{"A":"B"},"limits":{"cpus":0.5,"timeout_ns":1000000000},"network":"allow","allow":["example.org:443"]}`))
	f.Add([]byte(`{"version":1,"Language":"js","image":"docker://node:22@sha256:x","limits":{"pids":-1},"limits":{"memory_bytes":1e9}}`))
	f.Add([]byte(`{"version":1,"environment":"a.toml","image":"oci:/x"}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		got, err := decodeTemplate(text)
		if err != nil {
			return
		}
		if strings.ContainsAny(got.Environment, "/\\.") || strings.HasPrefix(got.Image, "/") || strings.HasPrefix(got.Image, ".") || strings.HasPrefix(got.Image, "oci:") {
			t.Errorf("%+v, want no path of this machine", got)
		}
		again(t, got)
	})
}

func TestTemplates(t *testing.T) {
	state := t.TempDir()
	t.Setenv("LLMSANDBOX_CONFIG_DIR", state)
	want := Template{Language: "python", Environment: DataScience, Imports: []string{"numpy"}, Limits: Limits{Memory: 1 << 30}}
	if err := errors.Join(CreateTemplate("data", Template{Environment: DataScience, Imports: []string{"numpy"}, Limits: want.Limits}), CreateTemplate("all", Template{Language: "js"})); err != nil {
		t.Fatal(err)
	}
	list, err := Templates()
	if err != nil || len(list) != 2 || list[0].Name != "all" || list[0].Language != "javascript" || list[1].Path != filepath.Join(state, "templates", "data.json") || !reflect.DeepEqual(list[1].Template, want) {
		t.Errorf("Templates() = %+v, %v, want all, and data with %+v", list, err, want)
	}
	for name, c := range map[string]struct {
		t  Template
		is error
	}{
		"Bad Name":    {Template{}, ErrInvalid},
		"language":    {Template{Language: "cobol"}, ErrUnknownLanguage},
		"limit":       {Template{Limits: Limits{CPUs: -2}}, ErrInvalid},
		"environment": {Template{Environment: "nosuch"}, ErrEnvironmentNotFound},
		"path":        {Template{Environment: "./web.toml"}, ErrInvalid},
		"variable":    {Template{Env: map[string]string{"A": "\xff"}}, ErrInvalid},
		"large":       {Template{Env: map[string]string{"A": strings.Repeat("x", 1<<20)}}, ErrInvalid},
	} {
		if err := CreateTemplate(name, c.t); !errors.Is(err, c.is) || !strings.Contains(err.Error(), name) {
			t.Errorf("CreateTemplate(%q): %v, want %v that names it", name, err, c.is)
		}
	}
	if err := RemoveTemplate("all"); err != nil {
		t.Error(err)
	}
	if err := RemoveTemplate("all"); !errors.Is(err, ErrTemplateNotFound) {
		t.Errorf("RemoveTemplate: %v, want ErrTemplateNotFound", err)
	}
	if err := os.WriteFile(list[1].Path, []byte(`{"version":1,"x":1}`), 0o600); err != nil {
		t.Fatal(err)
	}
	_, err = Templates()
	for _, err := range []error{err, opened(&Options{Template: "data"})} {
		if !errors.Is(err, ErrInvalid) || !strings.Contains(err.Error(), list[1].Path) || !strings.Contains(err.Error(), "llmsandbox template create data") {
			t.Errorf("%v, want ErrInvalid that names the file, and what to do", err)
		}
	}
}

// opened is the error of opening a sandbox.
func opened(o *Options) error {
	sb, err := Open(context.Background(), o)
	if err == nil {
		err = errors.Join(errors.New("it was opened"), sb.Close())
	}
	return err
}

// TestImageOfThisMachine: an image's directory is refused, by whichever name.
func TestImageOfThisMachine(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "oci-layout"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, image := range []string{dir, "oci:" + dir, dir + ":latest"} {
		if err := (&Template{Image: image}).check(); !errors.Is(err, ErrInvalid) || !strings.Contains(err.Error(), "name an image of a registry") {
			t.Errorf("%s: %v, want ErrInvalid", image, err)
		}
	}
	if err := (&Template{Image: "host"}).check(); err != nil {
		t.Errorf("host: %v, want nil", err)
	}
}

func TestWithTemplateFails(t *testing.T) {
	t.Setenv("LLMSANDBOX_CONFIG_DIR", t.TempDir())
	if err := CreateTemplate("data", Template{}); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name string
		o    Options
		is   error
		says string
	}{
		{"unknown", Options{Template: "dat"}, ErrTemplateNotFound, "there is data"},
		{"no name", Options{Template: "../data"}, ErrInvalid, "use a name"},
		{"another language", Options{Template: "data", Language: "rb"}, ErrInvalid, "template data: invalid: it is for python, and the language is ruby: use a template for ruby, or none"},
		{"unknown language", Options{Template: "data", Language: "cobol"}, ErrUnknownLanguage, "cobol"},
		{"for a supervisor", Options{Template: "dat", Supervisor: &Supervisor{}}, ErrTemplateNotFound, "there is data"},
	} {
		if err := opened(&c.o); !errors.Is(err, c.is) || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %v, want %v, an error containing %q", c.name, err, c.is, c.says)
		}
	}
	if o, err := (Options{Template: "data", Language: "py"}).WithTemplate(); err != nil || o.Language != "python" || o.Template != "" {
		t.Errorf("an alias: %+v, %v, want python and no template", o, err)
	}
}

// TestWithTemplate: of any options and any template, what the options set counts, and all else is the template's.
func TestWithTemplate(t *testing.T) {
	t.Setenv("LLMSANDBOX_CONFIG_DIR", t.TempDir())
	rapid.Check(t, func(t *rapid.T) {
		texts := func(name string, of ...string) []string {
			return rapid.SliceOfN(rapid.SampledFrom(of), 0, 2).Draw(t, name)
		}
		text := func(name string, of ...string) string { return rapid.SampledFrom(append(of, "")).Draw(t, name) }
		draw := func() Template {
			d := Template{
				Language: text("language", "python", "py"), Image: text("image", "host", "python:3"), Environment: text("environment", DataScience),
				Libraries: texts("libraries", "six", "attrs>=1"), Imports: texts("imports", "json", "os.path"),
				Env: rapid.MapOfN(rapid.SampledFrom([]string{"A", "B", "C"}), rapid.String().Filter(func(s string) bool { return !strings.Contains(s, "\x00") }), 0, 3).Draw(t, "env"),
				Limits: Limits{
					Memory: rapid.SampledFrom([]int64{0, Unlimited, 1 << 28, 1 << 30}).Draw(t, "memory"), CPUs: rapid.SampledFrom([]float64{0, Unlimited, 0.5, 2}).Draw(t, "cpus"),
					PIDs: rapid.SampledFrom([]int64{0, Unlimited, 64}).Draw(t, "pids"), Disk: rapid.SampledFrom([]int64{0, Unlimited, 1 << 28}).Draw(t, "disk"),
					Timeout: rapid.SampledFrom([]time.Duration{0, Unlimited, time.Second}).Draw(t, "timeout"), Output: rapid.SampledFrom([]int64{0, Unlimited, 100}).Draw(t, "output"),
				},
				Network: NetworkMode(text("network", "none", "full", "allow")),
			}
			if d.Network == NetworkAllow {
				d.Allow = []string{text("rule", "example.org") + ".example.org"}
				d.Allow[0] = strings.TrimPrefix(d.Allow[0], ".")
			}
			return d
		}
		tmpl, own := draw(), draw()
		if err := CreateTemplate("x", tmpl); err != nil {
			t.Fatal(err)
		}
		before := maps.Clone(own.Env)
		got, err := Options{
			Template: "x", ID: "kept", Language: own.Language, Image: own.Image, Environment: own.Environment, Libraries: own.Libraries, Imports: own.Imports, Env: own.Env, Limits: own.Limits,
			Network: Network{Mode: own.Network, Allow: own.Allow},
		}.WithTemplate()
		if err != nil {
			t.Fatal(err)
		}
		want := Options{ID: "kept", Language: "python"}
		want.Image, want.Environment = either(own.Image, tmpl.Image), either(own.Environment, tmpl.Environment)
		want.Limits = Limits{
			either(own.Limits.Memory, tmpl.Limits.Memory), either(own.Limits.CPUs, tmpl.Limits.CPUs), either(own.Limits.PIDs, tmpl.Limits.PIDs),
			either(own.Limits.Disk, tmpl.Limits.Disk), either(own.Limits.Timeout, tmpl.Limits.Timeout), either(own.Limits.Output, tmpl.Limits.Output),
		}
		network := own
		if own.Network == "" {
			network = tmpl
		}
		list := func(own, other []string) []string {
			if len(own) > 0 {
				return own
			}
			return other
		}
		switch {
		case got.Template != "" || got.ID != want.ID || got.Language != want.Language || got.Image != want.Image || got.Environment != want.Environment || got.Limits != want.Limits:
			t.Errorf("%+v, want %+v", got, want)
		case got.Network.Mode != network.Network || !slices.Equal(got.Network.Allow, network.Allow):
			t.Errorf("%+v, want %s, %q", got.Network, network.Network, network.Allow)
		case !slices.Equal(got.Libraries, list(own.Libraries, tmpl.Libraries)) || !slices.Equal(got.Imports, list(own.Imports, tmpl.Imports)):
			t.Errorf("%q, %q, want those of %+v, else of %+v", got.Libraries, got.Imports, own, tmpl)
		case !maps.Equal(own.Env, before):
			t.Errorf("the caller's Env is %q, want it as it was: %q", own.Env, before)
		}
		for _, name := range []string{"A", "B", "C"} {
			value, is := own.Env[name]
			if !is {
				value, is = tmpl.Env[name]
			}
			if v, ok := got.Env[name]; ok != is || v != value {
				t.Errorf("%s = %q, %v, want %q, %v", name, v, ok, value, is)
			}
		}
	})
}

func either[T comparable](own, other T) T {
	var zero T
	if own != zero {
		return own
	}
	return other
}
