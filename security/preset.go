package security

import (
	"cmp"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"
)

// Presets are the names of the built-in policies, the mildest first.
func Presets() []string {
	return []string{"minimal", "development", "educational", "web_scraping", "data_science", "production", "strict"}
}

// Preset is a built-in policy, to be used or to start from: it is the caller's own copy.
// Its error, for an unknown name, wraps ErrPolicy.
func Preset(name string) (Policy, error) {
	p := Policy{Name: name}
	var parts []part
	switch name {
	case "minimal":
		p.Description = "Refuses what destroys a system, and shells."
		p.Threshold = High
		parts = []part{{shells(), High}, {destruction(), High}, {privileges(), High}}
	case "development":
		p.Description = "Refuses shells, native code and what destroys a system; tells of the rest."
		p.Threshold, p.Computed = High, Low
		parts = []part{
			{shells(), High}, {destruction(), High}, {privileges(), High}, {native(), High}, {processes(), Medium}, {sockets(), Medium},
			{evaluation(), Medium}, {deletion(), Low}, {secrets(), Low},
		}
	case "educational":
		p.Description = "For exercises: refuses processes, deletion and raw sockets; tells of what is risky."
		p.Threshold, p.Computed = Medium, Low
		parts = []part{
			{shells(), High}, {processes(), High}, {destruction(), High}, {privileges(), High}, {secrets(), Medium}, {deletion(), Medium},
			{rawSockets(), Medium}, {native(), Medium}, {sockets(), Low}, {web(), Low}, {evaluation(), Low}, {system(), Low},
		}
	case "web_scraping":
		p.Description = "For programs that fetch pages: refuses processes, servers, deletion and code made at run time."
		p.Threshold, p.Computed = Medium, Low
		parts = []part{
			{shells(), High}, {processes(), High}, {destruction(), High}, {privileges(), High}, {native(), High}, {secrets(), High}, {deletion(), Medium},
			{evaluation(), Medium}, {sockets(), Medium}, {serialized(), Medium}, {environment(), Medium}, {web(), Low}, {writing(), Low}, {waiting(), Low},
		}
	case "data_science":
		p.Description = "For work on data: refuses processes, sockets and deletion; tells of files, pickles and requests."
		p.Threshold, p.Computed = Medium, Low
		parts = []part{
			{shells(), High}, {processes(), High}, {destruction(), High}, {privileges(), High}, {native(), High}, {secrets(), High}, {deletion(), Medium},
			{evaluation(), Medium}, {sockets(), Medium}, {environment(), Medium}, {web(), Low}, {writing(), Low}, {serialized(), Low},
		}
	case "production":
		p.Description = "Refuses all that reaches beyond computing: processes, files, network, environment, code made at run time."
		p.Threshold, p.Computed = Low, Medium
		parts = production()
	case "strict":
		p.Description = "As production, and refuses reading files, introspection and threads too."
		p.Threshold, p.Computed = Low, High
		parts = append(production(), part{reading(), Medium}, part{introspection(), Medium}, part{waiting(), Low})
	default:
		return Policy{}, fmt.Errorf("%w: there is no policy %.60q: there are %s", ErrPolicy, name, strings.Join(Presets(), ", "))
	}
	seen := map[string]bool{}
	for _, part := range parts {
		part.addTo(&p, seen)
	}
	return p, nil
}

func production() []part {
	return []part{
		{shells(), High}, {processes(), High}, {destruction(), High}, {privileges(), High}, {native(), High}, {secrets(), High}, {evaluation(), High},
		{deletion(), High}, {sockets(), High}, {rawSockets(), High}, {serialized(), Medium}, {environment(), Medium}, {web(), Medium}, {system(), High},
		{writing(), Low},
	}
}

// A concern is one reason to name things, and what it is about in each language: words
// parted by white space.
type concern struct {
	about    string
	modules  map[string]string
	names    map[string]string
	patterns []Pattern
}

type part struct {
	concern
	severity Severity
}

// addTo adds the concern's rules that are not there already.
func (c part) addTo(p *Policy, seen map[string]bool) {
	for lang, name := range fresh(c.modules, "module", seen) {
		p.Modules = append(p.Modules, RestrictedModule{Name: name, Description: c.about, Severity: c.severity, Languages: []string{lang}})
	}
	for lang, name := range fresh(c.names, "name", seen) {
		p.Names = append(p.Names, RestrictedName{Name: name, Description: c.about, Severity: c.severity, Languages: []string{lang}})
	}
	for _, pattern := range c.patterns {
		pattern.Severity = c.severity
		pattern.Description = cmp.Or(pattern.Description, c.about)
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
