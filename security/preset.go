package security

import (
	"cmp"
	_ "embed"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"

	"github.com/BurntSushi/toml"
)

// Presets are the names of the built-in policies, the mildest first.
func Presets() []string {
	return []string{"minimal", "development", "educational", "web_scraping", "data_science", "production", "strict"}
}

//go:embed presets.toml
var presets string

// Preset is a built-in policy, to be used or to start from: it is the caller's own copy.
// Its error, for an unknown name, wraps ErrPolicy.
func Preset(name string) (Policy, error) {
	if !slices.Contains(Presets(), name) {
		return Policy{}, fmt.Errorf("%w: there is no policy %.60q: there are %s", ErrPolicy, name, strings.Join(Presets(), ", "))
	}
	var all struct {
		Presets map[string]struct {
			Description         string
			Threshold, Computed Severity
			Concerns            [][2]string // a severity, and the concerns that have it
		}
		Concerns map[string]concern
	}
	about, err := toml.Decode(presets, &all)
	if unknown := about.Undecoded(); err == nil && len(unknown) > 0 {
		err = fmt.Errorf("there is no key %v", unknown[0])
	}
	if err != nil {
		return Policy{}, fmt.Errorf("read the built-in policies: %w", err)
	}
	of, seen := all.Presets[name], map[string]bool{}
	p := Policy{Name: name, Description: of.Description, Threshold: of.Threshold, Computed: of.Computed}
	for _, group := range of.Concerns {
		severity, err := ParseSeverity(group[0])
		if err != nil {
			return Policy{}, err
		}
		for of := range strings.FieldsSeq(group[1]) {
			c, ok := all.Concerns[of]
			if !ok {
				return Policy{}, fmt.Errorf("the built-in policy %s: there is no concern %s", name, of)
			}
			c.addTo(&p, severity, seen)
		}
	}
	return p, nil
}

// A concern is one reason to name things, and what it is about in each language: words
// parted by white space.
type concern struct {
	About          string
	Modules, Names map[string]string
	Patterns       []Pattern
}

// addTo adds the concern's rules that are not there already.
func (c concern) addTo(p *Policy, severity Severity, seen map[string]bool) {
	for lang, name := range fresh(c.Modules, "module", seen) {
		p.Modules = append(p.Modules, RestrictedModule{Name: name, Description: c.About, Severity: severity, Languages: []string{lang}})
	}
	for lang, name := range fresh(c.Names, "name", seen) {
		p.Names = append(p.Names, RestrictedName{Name: name, Description: c.About, Severity: severity, Languages: []string{lang}})
	}
	for _, pattern := range c.Patterns {
		pattern.Severity = severity
		pattern.Description = cmp.Or(pattern.Description, c.About)
		p.Patterns = append(p.Patterns, pattern)
	}
}

// fresh yields the names in each language that are not there already.
func fresh(by map[string]string, kind string, seen map[string]bool) iter.Seq2[string, string] {
	return func(yield func(string, string) bool) {
		for _, lang := range slices.Sorted(maps.Keys(by)) {
			for name := range strings.FieldsSeq(by[lang]) {
				key := kind + " " + lang + " " + name
				if !seen[key] && !yield(lang, name) {
					return
				}
				seen[key] = true
			}
		}
	}
}
