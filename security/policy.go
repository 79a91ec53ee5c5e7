// Package security says which programs may not even start: a [Policy] names modules,
// names and patterns with a severity each, and a [Checker] finds them in code by its
// tokens, without running it. That is advice to an honest program and a first warning to a
// careless one; a hostile one is held by the sandbox, which enforces the rest.
package security

import (
	"fmt"
	"strings"
)

// A Policy says what is looked for in code, and from which severity on it is refused. It
// is plain data, as in a policy file; [Compile] makes it usable.
type Policy struct {
	// Name and Description are for people.
	Name        string `json:"name,omitempty"`
	Description string `json:"description,omitempty"`
	// Threshold is the severity from which on a finding refuses the code. [Safe] refuses
	// nothing: findings are only reported.
	Threshold Severity `json:"severity_threshold,omitempty"`
	// Modules, Names and Patterns are what is looked for.
	Modules  []RestrictedModule `json:"restricted_modules,omitempty"`
	Names    []RestrictedName   `json:"restricted_names,omitempty"`
	Patterns []Pattern          `json:"patterns,omitempty"`
	// Computed is the severity of what cannot be known without running the code: a module
	// or a name that is computed, code made at run time. [Safe] still reports it.
	Computed Severity `json:"computed,omitempty"`
}

// A RestrictedModule is a module that is not to be imported, with all below it: "os" bars
// "os.path" in Python, and "os/exec" in Go. A library of that name is barred as well.
type RestrictedModule struct {
	Name        string   `json:"name"`
	Description string   `json:"description,omitempty"`
	Severity    Severity `json:"severity"`
	// Languages are those it is meant for; none: all.
	Languages []string `json:"languages,omitempty"`
}

// A RestrictedName is a function, class or attribute that is not to be used: "os.system",
// or "os.*" for all below.
type RestrictedName struct {
	Name        string   `json:"name"`
	Description string   `json:"description,omitempty"`
	Severity    Severity `json:"severity"`
	Languages   []string `json:"languages,omitempty"`
}

// A Pattern is a regular expression (RE2 syntax). It is matched on the code without its
// comments and with its names resolved, so `os\.system\(` also finds an alias of it.
type Pattern struct {
	Pattern     string   `json:"pattern"`
	Description string   `json:"description,omitempty"`
	Severity    Severity `json:"severity"`
	Languages   []string `json:"languages,omitempty"`
	// In says where a match may begin; empty means [InCode].
	In Where `json:"in,omitempty"`
}

// Where a match of a pattern may begin.
type Where string

// The places.
const (
	// InCode: not inside a string literal or a comment.
	InCode Where = "code"
	// InStrings: in the value of a string literal that is no docstring.
	InStrings Where = "strings"
	// InAll: in either.
	InAll Where = "all"
)

// A Severity is how bad a finding is. Its text, in JSON and YAML too, is its name in
// capitals.
type Severity int

// The severities, in their order.
const (
	Safe Severity = iota
	Low
	Medium
	High
)

var severities = [...]string{Safe: "SAFE", Low: "LOW", Medium: "MEDIUM", High: "HIGH"}

func (s Severity) valid() bool { return s >= Safe && int(s) < len(severities) }

// String is the severity's name in capitals.
func (s Severity) String() string {
	if !s.valid() {
		return fmt.Sprintf("Severity(%d)", int(s))
	}
	return severities[s]
}

// ParseSeverity reads a severity's name in any case, or its number from 0, safe, to 3,
// high. Its error wraps ErrPolicy.
func ParseSeverity(text string) (Severity, error) {
	want := strings.TrimSpace(text)
	for s, name := range severities {
		if strings.EqualFold(want, name) || want == string(rune('0'+s)) {
			return Severity(s), nil
		}
	}
	return Safe, fmt.Errorf("%w: severity %.40q: use SAFE, LOW, MEDIUM or HIGH", ErrPolicy, text)
}

// MarshalText writes the name.
func (s Severity) MarshalText() ([]byte, error) {
	if !s.valid() {
		return nil, fmt.Errorf("%w: there is no %v", ErrPolicy, s)
	}
	return []byte(s.String()), nil
}

// UnmarshalText is ParseSeverity.
func (s *Severity) UnmarshalText(text []byte) (err error) {
	*s, err = ParseSeverity(string(text))
	return err
}

// UnmarshalJSON reads a name or a number.
func (s *Severity) UnmarshalJSON(data []byte) error {
	text := string(data)
	if text == "null" {
		return nil
	}
	if len(text) >= 2 && text[0] == '"' {
		text = text[1 : len(text)-1]
	}
	return s.UnmarshalText([]byte(text))
}
