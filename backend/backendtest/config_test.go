package backendtest

import (
	"context"
	"strings"
	"testing"

	"github.com/llmsandbox/llmsandbox/backend"
)

type someBackend struct{ backend.Backend }

type someOutside struct{}

func (someOutside) Processes(context.Context, string) ([]Process, error) { return nil, nil }
func (someOutside) Kill(context.Context, string) error                   { return nil }
func (someOutside) Left(context.Context) ([]string, error)               { return nil, nil }

// A mistake in a configuration must not pass as a case that is skipped.
func TestConfigMistakes(t *testing.T) {
	for name, c := range map[string]struct {
		config Config
		want   string // part of the error; "" for none
	}{
		"whole":             {Config{Backend: someBackend{}, Outside: someOutside{}}, ""},
		"without a view":    {Config{Backend: someBackend{}, Lacks: map[Feature]string{SeenFromOutside: "it is remote"}}, ""},
		"a language":        {Config{Backend: someBackend{}, Outside: someOutside{}, Lacks: map[Feature]string{"java": "no image"}}, ""},
		"no backend":        {Config{Outside: someOutside{}}, "Backend is nil"},
		"view not declared": {Config{Backend: someBackend{}}, "Config.Outside"},
		"view twice":        {Config{Backend: someBackend{}, Outside: someOutside{}, Lacks: map[Feature]string{SeenFromOutside: "x"}}, "Config.Outside"},
		"unknown feature":   {Config{Backend: someBackend{}, Outside: someOutside{}, Lacks: map[Feature]string{"jaav": "x"}}, "jaav"},
		"a case":            {Config{Backend: someBackend{}, Outside: someOutside{}, Only: []string{"AbuseCatalogue"}}, ""},
		"unknown case":      {Config{Backend: someBackend{}, Outside: someOutside{}, Only: []string{"AbuseCatalog"}}, "AbuseCatalog"},
		"no reason":         {Config{Backend: someBackend{}, Outside: someOutside{}, Lacks: map[Feature]string{"java": ""}}, "without a reason"},
	} {
		err := c.config.check()
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
}

// Two cases of one name would differ only by a number.
func TestCaseNames(t *testing.T) {
	seen := map[string]bool{}
	for _, k := range cases {
		if seen[k.name] || k.run == nil {
			t.Errorf("case %s is there twice, or does nothing, want seen[k.name] = false, run not nil", k.name)
		}
		seen[k.name] = true
	}
}
