package python

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"sort"
	"strings"
	"testing"

	"github.com/llmsandbox/llmsandbox/artifact"
	"github.com/llmsandbox/llmsandbox/internal/language"
)

// A description is what the writer says of an artifact.
type description struct {
	Name, MIME, Source, Title string
	Figure, Width, Height     int
	DPI                       float64
	Chart                     *artifact.Chart
	Also                      []struct{ MIME, File string }
}

// An item is one captured artifact.
type item struct {
	description
	data []byte
	also [][]byte
}

// A program is a run of Python with the capture around it.
type program struct {
	t       *testing.T
	python  string
	dir     string // the program's
	capture func(language.CaptureSource) language.Capture
	source  language.CaptureSource
	environ []string
}

func newProgram(t *testing.T, python string) *program {
	t.Helper()
	p := &program{t: t, python: python, dir: t.TempDir(), capture: capture}
	p.source = language.CaptureSource{Dir: t.TempDir(), Support: filepath.Join(t.TempDir(), "support"), Current: p.current}
	p.environ = []string{"PATH=/usr/local/bin:/usr/bin:/bin", "HOME=" + home, "LANG=C.UTF-8"}
	return p
}

func (p *program) current(name string) string {
	for _, kv := range p.environ {
		if value, ok := strings.CutPrefix(kv, name+"="); ok {
			return value
		}
	}
	return ""
}

// lay writes the capture's files.
func (p *program) lay() language.Capture {
	p.t.Helper()
	c := p.capture(p.source)
	for _, f := range c.Files {
		if err := os.MkdirAll(filepath.Dir(f.Path), 0o755); err != nil {
			p.t.Fatal(err)
		}
		if err := os.WriteFile(f.Path, f.Data, os.FileMode(f.Mode)); err != nil {
			p.t.Fatal(err)
		}
	}
	return c
}

// run returns what the code prints and what was captured of it.
func (p *program) run(code string, args ...string) (stdout, stderr string, items []item) {
	p.t.Helper()
	c := p.lay()
	main := filepath.Join(p.dir, "main.py")
	if err := os.WriteFile(main, []byte(code), 0o644); err != nil {
		p.t.Fatal(err)
	}
	stdout, stderr = p.exec(append(p.environ, c.Env...), args...)
	return stdout, stderr, p.items()
}

// bare runs the last code without the capture.
func (p *program) bare() (stdout, stderr string) { return p.exec(p.environ) }

func (p *program) exec(environ []string, args ...string) (stdout, stderr string) {
	p.t.Helper()
	cmd := exec.Command(p.python, append([]string{"-u", filepath.Join(p.dir, "main.py")}, args...)...)
	cmd.Dir, cmd.Env = p.dir, environ
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err := cmd.Run(); err != nil {
		if _, ended := err.(*exec.ExitError); !ended {
			p.t.Fatal(err)
		}
	}
	return out.String(), errs.String()
}

// shown is run for programs of which nothing but artifacts is expected.
func (p *program) shown(code string) []item {
	p.t.Helper()
	stdout, stderr, items := p.run(code)
	if stdout != "" || stderr != "" {
		p.t.Errorf("stdout %q, stderr %q, want neither", stdout, stderr)
	}
	if dropped := p.dropped(); dropped != "" {
		p.t.Errorf("dropped: %s", dropped)
	}
	return items
}

func (p *program) dropped() string {
	data, err := os.ReadFile(filepath.Join(p.source.Dir, "dropped"))
	if err != nil && !os.IsNotExist(err) {
		p.t.Fatal(err)
	}
	return string(data)
}

func (p *program) items() []item {
	p.t.Helper()
	found, err := filepath.Glob(filepath.Join(p.source.Dir, "*.json"))
	if err != nil {
		p.t.Fatal(err)
	}
	sort.Strings(found)
	var items []item
	for _, path := range found {
		var it item
		if err := json.Unmarshal(p.read(path), &it.description); err != nil {
			p.t.Fatalf("%s: %v", path, err)
		}
		it.data = p.read(strings.TrimSuffix(path, ".json") + ".data")
		for _, form := range it.Also {
			it.also = append(it.also, p.read(filepath.Join(p.source.Dir, form.File)))
		}
		items = append(items, it)
	}
	return items
}

func (p *program) read(path string) []byte {
	p.t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		p.t.Fatal(err)
	}
	return data
}

// names are what items are called, for comparisons.
func names(items []item) string {
	var list []string
	for _, it := range items {
		list = append(list, it.Name+" "+it.MIME)
	}
	return strings.Join(list, ", ")
}
