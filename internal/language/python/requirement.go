package python

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/llmsandbox/llmsandbox/internal/language"
	"github.com/llmsandbox/llmsandbox/internal/language/registries"
)

// grammar is a requirement of PEP 508 without what is no name and version: no address,
// no path, no marker, no spaces. Versions are those of PEP 440.
var grammar = sync.OnceValue(func() (g struct{ requirement, clause, arbitrary *regexp.Regexp }) {
	const name = `[A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?`
	g.requirement = regexp.MustCompile(`^(` + name + `)(?:\[(` + name + `(?:,` + name + `)*)\])?((?:[=<>!~]=?=?[^=<>!~].*)?)$`)
	const version = `v?(?:[0-9]+!)?[0-9]+(?:\.[0-9]+)*(?:[-_.]?(?:alpha|a|beta|b|preview|pre|c|rc)[-_.]?[0-9]*)?` +
		`(?:-[0-9]+|[-_.]?(?:post|rev|r)[-_.]?[0-9]*)?(?:[-_.]?dev[-_.]?[0-9]*)?`
	g.clause = regexp.MustCompile(`^(?:(?:==|!=)` + version + `(?:\+[a-z0-9]+(?:[-_.][a-z0-9]+)*|\.\*)?|(?:~=|<=|>=|<|>)` + version + `)$`)
	g.arbitrary = regexp.MustCompile(`^===[A-Za-z0-9._+!*-]+$`)
	return g
})

// check takes "Name[extra,...]" with version clauses such as ">=1.0,<2".
func check(library string) (string, error) {
	if err := registries.Plain(library); err != nil {
		return "", err
	}
	m := grammar().requirement.FindStringSubmatch(library)
	if m == nil {
		return "", refusal(library)
	}
	canonical := normal(m[1])
	if m[2] != "" {
		extras := strings.Split(m[2], ",")
		for i, e := range extras {
			extras[i] = normal(e)
		}
		slices.Sort(extras)
		canonical += "[" + strings.Join(slices.Compact(extras), ",") + "]"
	}
	if m[3] == "" {
		return canonical, nil
	}
	clauses := strings.Split(m[3], ",")
	for i, c := range clauses {
		if grammar().arbitrary.MatchString(c) {
			continue
		}
		clauses[i] = strings.ToLower(c)
		if !grammar().clause.MatchString(clauses[i]) {
			return "", refusal(library)
		}
	}
	slices.Sort(clauses)
	return canonical + strings.Join(slices.Compact(clauses), ","), nil
}

func refusal(library string) error {
	return fmt.Errorf("library %q of Python: %w: write it like numpy, pandas>=2.0,<3 or requests[socks]==2.32.3, without spaces, paths or addresses",
		library, language.ErrInvalidLibrary)
}

// libraryName is the name that a requirement asks for.
func libraryName(canonical string) string {
	if n := strings.IndexAny(canonical, "[=<>!~; "); n >= 0 {
		canonical = canonical[:n]
	}
	return normal(canonical)
}

// normal is the one form of a name that ignores case and the differences between dashes,
// dots and underscores.
func normal(name string) string {
	name = strings.NewReplacer("_", "-", ".", "-").Replace(strings.ToLower(name))
	for strings.Contains(name, "--") {
		name = strings.ReplaceAll(name, "--", "-")
	}
	return name
}
