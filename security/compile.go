package security

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/llmsandbox/llmsandbox/internal/language"
	"github.com/llmsandbox/llmsandbox/internal/language/all"
)

// Bounds on a policy, which may come from a client.
const (
	maxRules       = 4096
	maxPatterns    = 256
	maxText        = 1000
	maxInstruction = 4000 // of one pattern's program, on each of which a byte may cost
)

// ErrPolicy: a policy makes no sense; the text says which part.
var ErrPolicy = errors.New("policy is not valid")

// A PatternError reports which pattern of a policy is no regular expression. It wraps
// ErrPolicy.
type PatternError struct {
	// Index is the pattern's place in Policy.Patterns, from 0.
	Index   int
	Pattern string
	Err     error
}

func (e *PatternError) Error() string {
	return fmt.Sprintf("%v: patterns[%d] %.80q: %v: use Go's (RE2) syntax", ErrPolicy, e.Index, e.Pattern, e.Err)
}

func (e *PatternError) Unwrap() []error { return []error{ErrPolicy, e.Err} }

// Compile checks a policy and makes it usable. The caller's policy may be changed
// afterwards. Its error wraps ErrPolicy; for a pattern it is a [*PatternError].
func Compile(p Policy) (*Checker, error) {
	c := &Checker{policy: clone(p), rules: map[string]*rules{}}
	for _, l := range all.All() {
		c.rules[l.Name] = newRules(l)
	}
	if err := c.compile(); err != nil {
		return nil, err
	}
	return c, nil
}

func (c *Checker) compile() error {
	p := &c.policy
	switch {
	case !p.Threshold.valid():
		return fmt.Errorf("%w: severity_threshold: there is no %v", ErrPolicy, p.Threshold)
	case !p.Computed.valid():
		return fmt.Errorf("%w: computed: there is no %v", ErrPolicy, p.Computed)
	case len(p.Modules) > maxRules || len(p.Names) > maxRules || len(p.Patterns) > maxPatterns:
		return fmt.Errorf("%w: it has more than %d modules or names, or %d patterns", ErrPolicy, maxRules, maxPatterns)
	case tooLong(p.Name, p.Description):
		return fmt.Errorf("%w: its name or description is longer than %d characters, or not UTF-8", ErrPolicy, maxText)
	}
	for i := range p.Modules {
		if err := c.addModule(&p.Modules[i]); err != nil {
			return fmt.Errorf("%w: restricted_modules[%d] %.80q: %w", ErrPolicy, i, p.Modules[i].Name, err)
		}
	}
	for i := range p.Names {
		if err := c.addName(&p.Names[i]); err != nil {
			return fmt.Errorf("%w: restricted_names[%d] %.80q: %w", ErrPolicy, i, p.Names[i].Name, err)
		}
	}
	for i := range p.Patterns {
		if err := c.addPattern(&p.Patterns[i]); err != nil {
			return &PatternError{i, p.Patterns[i].Pattern, err}
		}
	}
	return nil
}

func (c *Checker) addModule(m *RestrictedModule) error {
	langs, err := meantFor(m.Name, m.Description, m.Severity, &m.Languages)
	if err != nil {
		return err
	}
	if strings.HasSuffix(m.Name, "*") {
		return errors.New("a module bars all below it: leave the * off")
	}
	for _, l := range langs {
		r := c.rules[l.Name]
		r.modules[m.Name] = worse(r.modules[m.Name], m)
	}
	return nil
}

// worse is the rule with the higher severity of two on the same name, or else the one
// whose own name comes first.
func worse(have, m *RestrictedModule) *RestrictedModule {
	if have != nil && (have.Severity > m.Severity || have.Severity == m.Severity && have.Name <= m.Name) {
		return have
	}
	return m
}

func (c *Checker) addName(n *RestrictedName) error {
	langs, err := meantFor(n.Name, n.Description, n.Severity, &n.Languages)
	if err != nil {
		return err
	}
	name := n.Name
	if head, ok := strings.CutSuffix(name, "*"); ok && name != "*" {
		if !strings.HasSuffix(head, ".") && !strings.HasSuffix(head, "::") || strings.Contains(head, "*") {
			return errors.New("a * stands only at the end, behind a separator: os.*")
		}
	}
	for _, l := range langs {
		r := c.rules[l.Name]
		if have := r.names[name]; have == nil || have.Severity < n.Severity {
			r.names[name] = n
		}
	}
	return nil
}

func (c *Checker) addPattern(p *Pattern) error {
	langs, err := meantFor(p.Pattern, p.Description, p.Severity, &p.Languages)
	if err != nil {
		return err
	}
	switch p.In {
	case "", InCode, InStrings, InAll:
	default:
		return fmt.Errorf("in %.40q: use %s, %s or %s", p.In, InCode, InStrings, InAll)
	}
	compiled, err := newPattern(p)
	if err != nil {
		return err
	}
	for _, l := range langs {
		r := c.rules[l.Name]
		r.patterns = append(r.patterns, compiled)
	}
	return nil
}

// meantFor checks what all rules have, and returns the languages that one is meant for. It
// makes their names canonical.
func meantFor(name, description string, s Severity, languages *[]string) ([]*language.Language, error) {
	switch {
	case strings.TrimSpace(name) == "":
		return nil, errors.New("it is empty")
	case tooLong(name, description):
		return nil, fmt.Errorf("it or its description is longer than %d characters, or not UTF-8", maxText)
	case !s.valid():
		return nil, fmt.Errorf("there is no %v", s)
	case len(*languages) == 0:
		return all.All(), nil
	case len(*languages) > maxText:
		return nil, errors.New("it has too many languages")
	}
	var langs []*language.Language
	for i, name := range *languages {
		l, err := all.Get(name)
		if err != nil {
			return nil, err
		}
		(*languages)[i] = l.Name
		for _, known := range all.All() {
			if (known == l || language.Family(known.Name) == l.Name) && !slices.Contains(langs, known) {
				langs = append(langs, known)
			}
		}
	}
	return langs, nil
}

func tooLong(texts ...string) bool {
	return slices.ContainsFunc(texts, func(s string) bool { return utf8.RuneCountInString(s) > maxText || !utf8.ValidString(s) })
}

// clone copies a policy with all that it refers to.
func clone(p Policy) Policy {
	p.Modules, p.Names, p.Patterns = slices.Clone(p.Modules), slices.Clone(p.Names), slices.Clone(p.Patterns)
	for i := range p.Modules {
		p.Modules[i].Languages = slices.Clone(p.Modules[i].Languages)
	}
	for i := range p.Names {
		p.Names[i].Languages = slices.Clone(p.Names[i].Languages)
	}
	for i := range p.Patterns {
		p.Patterns[i].Languages = slices.Clone(p.Patterns[i].Languages)
	}
	return p
}
