// Package all is the registry of the languages a sandbox can run.
package all

import (
	"slices"
	"strings"

	"github.com/llmsandbox/llmsandbox/internal/edits"
	"github.com/llmsandbox/llmsandbox/internal/language"
	"github.com/llmsandbox/llmsandbox/internal/language/bash"
	"github.com/llmsandbox/llmsandbox/internal/language/cpp"
	"github.com/llmsandbox/llmsandbox/internal/language/declared"
	"github.com/llmsandbox/llmsandbox/internal/language/golang"
	"github.com/llmsandbox/llmsandbox/internal/language/java"
	"github.com/llmsandbox/llmsandbox/internal/language/javascript"
	"github.com/llmsandbox/llmsandbox/internal/language/python"
	"github.com/llmsandbox/llmsandbox/internal/language/r"
	"github.com/llmsandbox/llmsandbox/internal/language/ruby"
)

// coded are the languages that are written in Go.
var coded = [...]*language.Language{
	&python.Language, &javascript.Language, &javascript.TypeScript, &java.Language, &cpp.Language, &cpp.C,
	&golang.Language, &r.Language, &ruby.Language, &bash.Language,
}

// All returns the languages: those written in Go, the best known first, then those that files declare. The slice is
// the caller's.
func All() []*language.Language {
	return append(append(coded[:len(coded):len(coded)], declared.Builtin()...), added()...)
}

// Coded returns the languages that are written in Go. The slice is the caller's.
func Coded() []*language.Language { return slices.Clone(coded[:]) }

// Env is what the tools of all languages need in a sandbox. Those that files declare need nothing.
func Env() []string {
	var env []string
	for _, l := range coded {
		env = append(env, l.Env...)
	}
	return env
}

// each yields the languages as All has them, and reads declarations only where one is asked for.
func each(yield func(*language.Language) bool) {
	for _, list := range []func() []*language.Language{func() []*language.Language { return coded[:] }, declared.Builtin, added} {
		for _, l := range list() {
			if !yield(l) {
				return
			}
		}
	}
}

// Get returns the language of a name or alias, in any case. The error is a
// *language.UnknownError.
func Get(name string) (*language.Language, error) {
	want := strings.ToLower(strings.TrimSpace(name))
	for l := range each {
		if l.Name == want || contains(l.Aliases, want) {
			return l, nil
		}
	}
	return nil, unknown(name, want)
}

// names are the canonical names of all languages.
func names() []string {
	var list []string
	for l := range each {
		list = append(list, l.Name)
	}
	return list
}

func unknown(name, want string) error {
	e := &language.UnknownError{Name: name}
	const longest = 32 // no name is longer, and so none is near
	best := 3          // more differences than this is another word
	e.Known = names()
	for l := range each {
		for _, known := range append([]string{l.Name}, l.Aliases...) {
			if len(want) > longest {
				continue
			}
			if d := edits.Distance(want, known); d < best && d < len(known) {
				best, e.Closest = d, l.Name
			}
		}
	}
	return e
}

func contains(list []string, s string) bool {
	for _, e := range list {
		if e == s {
			return true
		}
	}
	return false
}
