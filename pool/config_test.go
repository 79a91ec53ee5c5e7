package pool

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/llmsandbox/llmsandbox"
)

// TestAcceptance71: every field has its default, and its bounds.
func TestAcceptance71(t *testing.T) {
	c, err := Config{}.resolve()
	if err != nil {
		t.Fatal(err)
	}
	c.open = nil
	want := Config{
		Max: 10, IdleTimeout: 300 * time.Second, AcquireTimeout: 30 * time.Second,
		HealthInterval: 60 * time.Second, Lifetime: 3600 * time.Second, Exhaustion: Wait, Reuse: ReuseNever,
		ResetTimeout: 10 * time.Second, RefillInterval: 50 * time.Millisecond,
		Keys: []Key{{Language: "python"}}, language: "python",
	}
	if d := cmp.Diff(want.visible(), c.visible()); d != "" {
		t.Errorf("defaults (-want +got):\n%s", d)
	}
	c, err = Config{IdleTimeout: Unlimited, AcquireTimeout: Unlimited, Lifetime: Unlimited}.resolve()
	if err != nil || c.IdleTimeout != 0 || c.AcquireTimeout != 0 || c.Lifetime != 0 {
		t.Errorf("without limits: %+v, %v, want no error, IdleTimeout = 0, AcquireTimeout = 0, Lifetime = 0", c.visible(), err)
	}
	for field, bad := range map[string]Config{
		"Max (-1) must be at least 1":                                        {Max: -1},
		"Min (-1) must not be negative":                                      {Min: -1},
		"pool: Min (3) must not exceed Max (2)":                              {Min: 3, Max: 2},
		"pool: Min (2) times the number of Keys (2) must not exceed Max (3)": {Min: 2, Max: 3, Keys: []Key{{Language: "python"}, {Language: "bash"}}},
		"MaxUses":        {MaxUses: -1},
		"IdleTimeout":    {IdleTimeout: -2},
		"AcquireTimeout": {AcquireTimeout: -time.Second},
		"HealthInterval": {HealthInterval: Unlimited},
		"Lifetime":       {Lifetime: -time.Hour},
		"ResetTimeout":   {ResetTimeout: -1},
		"RefillInterval": {RefillInterval: -1},
		"Exhaustion (\"panic\") must be Wait, FailFast or Temporary": {Exhaustion: "panic"},
		"Reuse":            {Reuse: "always"},
		"Options.ID":       {Options: llmsandbox.Options{ID: "mine"}},
		"Options.Language": {Options: llmsandbox.Options{Language: "cobol"}},
		"Keys[1]":          {Keys: []Key{{}, {Language: "cobol"}}},
	} {
		p, err := New(&bad)
		if !errors.Is(err, llmsandbox.ErrInvalid) || !strings.Contains(err.Error(), field) {
			t.Errorf("%s: %v, want ErrInvalid that names it", field, err)
		}
		if p != nil {
			t.Errorf("%s: there is a pool, want p = nil", field)
		}
	}
}

// visible is what of a Config can be compared.
func (c Config) visible() map[string]any {
	return map[string]any{
		"Max": c.Max, "Min": c.Min, "IdleTimeout": c.IdleTimeout, "AcquireTimeout": c.AcquireTimeout,
		"HealthInterval": c.HealthInterval, "Lifetime": c.Lifetime, "MaxUses": c.MaxUses, "Exhaustion": c.Exhaustion,
		"Reuse": c.Reuse, "ResetTimeout": c.ResetTimeout, "NoPrewarm": c.NoPrewarm, "RefillInterval": c.RefillInterval,
		"Keys": c.Keys, "language": c.language,
	}
}

func TestKeys(t *testing.T) {
	c, err := Config{Options: llmsandbox.Options{Language: "js", Image: "x", Libraries: []string{"b", "a"}}}.resolve()
	if err != nil {
		t.Fatal(err)
	}
	for name, k := range map[string]Key{
		"nothing":       {},
		"an alias":      {Language: "node"},
		"all":           {Language: "javascript", Image: "x", Libraries: []string{"a", "b"}},
		"another order": {Libraries: []string{"b", "a", "b"}},
	} {
		got, err := c.canonical(k)
		if want := (Key{Language: "javascript", Image: "x", Libraries: []string{"a", "b"}}); err != nil || got.id() != want.id() {
			t.Errorf("%s: %+v, %v; want %+v", name, got, err, want)
		}
	}
	ids := map[string]bool{}
	for _, k := range []Key{
		{}, {Language: "python"}, {Image: "y"}, {Libraries: []string{"a"}}, {Libraries: []string{"a,b"}}, {Libraries: []string{`a","b`}}, {Environment: "e"},
	} {
		got, err := c.canonical(k)
		if err != nil || ids[got.id()] {
			t.Errorf("%+v is the same as another: %v, want no error, ids[got.id()] = false", k, err)
		}
		ids[got.id()] = true
	}
	got, err := c.canonical(Key{Language: "python"})
	if o := c.options(got); err != nil || o.Language != "python" || o.Image != "x" || len(o.Libraries) != 0 || o.Resettable {
		t.Errorf("another language has the libraries of the pool's: %+v, %v, want no error, Language = \"python\", Image = \"x\", no Libraries, Resettable false", o, err)
	}
	if _, err := c.canonical(Key{Language: "cobol"}); !errors.Is(err, llmsandbox.ErrUnknownLanguage) {
		t.Errorf("%v, want ErrUnknownLanguage", err)
	}
}

// TestTemplate: what is in the template of the options counts as theirs, for keys too.
func TestTemplate(t *testing.T) {
	t.Setenv("LLMSANDBOX_CONFIG_DIR", t.TempDir())
	err := llmsandbox.CreateTemplate("data", llmsandbox.Template{
		Environment: llmsandbox.DataScience, Libraries: []string{"b", "a"}, Imports: []string{"json"}, Env: map[string]string{"A": "1"},
		Limits: llmsandbox.Limits{Memory: 1 << 30}, Network: llmsandbox.NetworkFull,
	})
	if err != nil {
		t.Fatal(err)
	}
	c, err := Config{Options: llmsandbox.Options{Template: "data"}, Keys: []Key{{}, {Language: "js"}, {Libraries: []string{"c"}}}}.resolve()
	if err != nil {
		t.Fatal(err)
	}
	want := []Key{
		{Language: "python", Environment: llmsandbox.DataScience, Libraries: []string{"a", "b"}},
		{Language: "javascript"},
		{Language: "python", Environment: llmsandbox.DataScience, Libraries: []string{"c"}},
	}
	if d := cmp.Diff(want, c.Keys, cmpopts.EquateEmpty()); d != "" {
		t.Errorf("keys (-want +got):\n%s", d)
	}
	for _, k := range c.Keys {
		o := c.options(k)
		if o.Template != "" || o.Limits.Memory != 1<<30 || o.Env["A"] != "1" || o.Network.Mode != llmsandbox.NetworkFull || len(o.Imports) > 0 != (k.Language == "python") {
			t.Errorf("%+v: options %+v, want what is in the template, and its imports for python alone", k, o)
		}
	}
	for is, o := range map[error]llmsandbox.Options{
		llmsandbox.ErrTemplateNotFound: {Template: "nosuch"}, llmsandbox.ErrInvalid: {Template: "data", Language: "js"},
	} {
		if _, err := New(&Config{Options: o}); !errors.Is(err, is) {
			t.Errorf("%+v: %v, want %v", o, err, is)
		}
	}
}

// TestForked: interpreters are kept for sandboxes of Python that the Config is about, and not for all that callers ask for.
func TestForked(t *testing.T) {
	c, err := Config{
		Options: llmsandbox.Options{Language: "bash", Image: "x", Environment: "own"}, Keys: []Key{{Language: "bash"}, {Language: "python", Libraries: []string{"b", "a"}}}, Zygote: true,
	}.resolve()
	if err != nil {
		t.Fatal(err)
	}
	for name, test := range map[string]struct {
		key  Key
		want bool
	}{
		"options":           {Key{Language: "python"}, true},
		"of Keys":           {Key{Language: "python", Libraries: []string{"a", "b"}}, true},
		"another language":  {Key{Language: "bash"}, false},
		"others' libraries": {Key{Language: "python", Libraries: []string{"c"}}, false},
		"others' image":     {Key{Language: "python", Image: "y"}, false},
		"environment":       {Key{Language: "python", Environment: "other"}, false},
	} {
		k, err := c.canonical(test.key)
		if err != nil {
			t.Fatal(err)
		}
		if got := c.forked[k.id()]; got != test.want {
			t.Errorf("%s: forked = %t, want %t", name, got, test.want)
		}
	}
}
