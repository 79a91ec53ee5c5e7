package e2e

import (
	"testing"

	"github.com/llmsandbox/llmsandbox"
	"github.com/llmsandbox/llmsandbox/backend/local"
	"github.com/llmsandbox/llmsandbox/internal/statedir"
	"github.com/llmsandbox/llmsandbox/pool"
)

// TestTemplate: sandboxes with a template have its modules imported, its variables and its limits, until options say otherwise.
func TestTemplate(t *testing.T) {
	state, err := statedir.Default()
	if err != nil {
		t.Fatal(err)
	}
	b := local.New(&local.Options{StateDir: state})
	t.Setenv("LLMSANDBOX_CONFIG_DIR", t.TempDir()) // of the templates alone
	err = llmsandbox.CreateTemplate("data", llmsandbox.Template{
		Imports: []string{"decimal"}, Env: map[string]string{"A": "template", "B": "template"}, Limits: llmsandbox.Limits{Output: 100},
	})
	if err != nil {
		t.Fatal(err)
	}
	const code = "import os, sys; print('decimal' in sys.modules, os.environ['A'], os.environ['B'])"
	sb := open(t, llmsandbox.Options{Backend: b, Template: "data", Env: map[string]string{"A": "own"}})
	for range 2 {
		if res := run(t, sb, code, nil); res.Stdout != "True own template\n" {
			t.Errorf("%+v, want Stdout = \"True own template\\n\"", res)
		}
	}
	if res := run(t, sb, "print('x' * 200)", nil); res.Status != llmsandbox.StatusOutputLimit {
		t.Errorf("%+v, want status output_limit", res)
	}
	if res := run(t, open(t, llmsandbox.Options{Backend: b, Template: "data", Limits: llmsandbox.Limits{Output: 1000}}), "print('x' * 200)", nil); !res.OK() {
		t.Errorf("with a limit of its own: %+v, want status ok", res)
	}

	p, err := pool.New(&pool.Config{Options: llmsandbox.Options{Backend: b, Template: "data", BestEffort: true}, Min: 1, Max: 2})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := p.Close(testContext(t)); err != nil {
			t.Error(err)
		}
	})
	if err := llmsandbox.RemoveTemplate("data"); err != nil {
		t.Fatal(err)
	}
	for range 2 { // the pool has read it
		if res, err := p.Run(testContext(t), code, nil); err != nil || res.Stdout != "True template template\n" {
			t.Errorf("in a pool: %+v, %v, want Stdout = \"True template template\\n\"", res, err)
		}
	}
}
