package llmsandbox

import (
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"testing"

	"github.com/llmsandbox/llmsandbox/internal/language"
)

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
		"an address from an image":       {first: true, answer: urls("http://10.0.0.1/"), err: ErrUnsupported},
		"an address in brackets":         {first: true, answer: urls("http://[fd00::1]/"), err: ErrUnsupported},
	} {
		t.Run(name, func(t *testing.T) {
			inside := language.Ask{Home: "inside"}
			host := urls("https://host.test")
			q := &libraryRequest{language: &language.Language{Libraries: &language.Libraries{
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
			r, trusted, err := q.registries(t.Context(), inside, c.host)
			if !errors.Is(err, c.err) {
				t.Fatalf("%+v, %v, %v", r, trusted, err)
			}
			// An image is trusted with what the machine names, and with nothing else.
			if slices.Contains(trusted, "https://host.test") != (c.machine == nil) && err == nil {
				t.Errorf("trusted: %q", trusted)
			}
			if err == nil && c.wantHost != strings.Contains(fmt.Sprint(r.URLs), "host.test") {
				t.Errorf("%q", r.URLs)
			}
		})
	}
}
