package security

import (
	"bytes"
	"cmp"
	"slices"
	"strings"
	"sync"

	"github.com/llmsandbox/llmsandbox/internal/language"
)

// rules are those of a policy that are meant for one language, by what they name.
type rules struct {
	modules map[string]*RestrictedModule
	// names has "os.*" under that name.
	names    map[string]*RestrictedName
	patterns []pattern
	// libraries are the modules by the names of their libraries.
	libraries func() map[string]*RestrictedModule
	// longest is how many bytes the longest name of a module or a name has.
	longest func() int
}

func newRules(l *language.Language) *rules {
	r := &rules{modules: map[string]*RestrictedModule{}, names: map[string]*RestrictedName{}}
	r.libraries = sync.OnceValue(func() map[string]*RestrictedModule {
		libraries := map[string]*RestrictedModule{}
		for _, m := range r.modules {
			for _, name := range librariesOf(l, m.Name) {
				libraries[name] = worse(libraries[name], m)
			}
		}
		return libraries
	})
	r.longest = sync.OnceValue(func() int {
		n := 0
		for name := range r.modules {
			n = max(n, len(name))
		}
		for name := range r.names {
			n = max(n, len(name))
		}
		return n
	})
	return r
}

// module is the rule on a module or on what it lies below: the worst, and of those the
// most specific. Of a name that code made long, no more is looked at than a rule may be about.
func (r *rules) module(name, separator string) *RestrictedModule {
	return above(r.modules, name[:min(len(name), r.longest()+len(separator)+1)], separator)
}

// library is the rule on a library's name, or on what that lies below: a scope, an
// organisation, a Maven group.
func (r *rules) library(name string) *RestrictedModule {
	best := above(r.libraries(), name, "/")
	if group, _, ok := strings.Cut(name, ":"); ok {
		if m := above(r.libraries(), group, "."); m != nil && (best == nil || m.Severity > best.Severity) {
			best = m
		}
	}
	return best
}

func above(in map[string]*RestrictedModule, name, separator string) *RestrictedModule {
	if len(in) == 0 {
		return nil
	}
	best := in[name]
	for separator != "" {
		i := strings.LastIndex(name, separator)
		if i < 0 {
			break
		}
		name = name[:i]
		if m := in[name]; m != nil && (best == nil || m.Severity > best.Severity) {
			best = m
		}
	}
	return best
}

// name is the rule on a name or on all below a part of it, the worst, and of those the
// most specific.
func (r *rules) name(name string) *RestrictedName {
	if len(r.names) == 0 {
		return nil
	}
	best := r.names[name]
	for end := min(len(name), r.longest()); end > 0; end-- {
		head := name[:end]
		if !strings.HasSuffix(head, ".") && !strings.HasSuffix(head, "::") {
			continue
		}
		if n := r.names[head+"*"]; n != nil && (best == nil || n.Severity > best.Severity) {
			best = n
		}
	}
	return best
}

// maxPasses bounds how often a text is searched for one pattern.
const maxPasses = 8

// match finds a pattern where it may begin.
func (t *texts) match(p pattern) []language.Span {
	if !t.mayHave(p.needs) {
		return nil
	}
	var found []language.Span
	if p.In != InStrings {
		found = append(t.inCode(p), t.inHidden(p)...)
		found = append(found, t.inValues(p, t.executed)...)
	}
	if p.In == InStrings || p.In == InAll {
		found = append(found, t.inValues(p, t.strings)...)
	}
	return found
}

// mayHave reports whether one of the texts is anywhere, or there are none.
func (t *texts) mayHave(needs []string) bool {
	for _, n := range needs {
		if t.has(n) {
			return true
		}
	}
	return len(needs) == 0
}

func (t *texts) has(text string) bool {
	if bytes.Contains(t.code.bytes, []byte(text)) || bytes.Contains(t.hidden.bytes, []byte(text)) {
		return true
	}
	return slices.ContainsFunc(t.strings, func(l language.Literal) bool { return strings.Contains(l.Value, text) })
}

// inCode finds matches that begin in code. One that begins in a string may hide one behind
// it: such strings are blanked, and the text is searched again. Code that goes on like that
// for long is made to be found out; its strings count then.
func (t *texts) inCode(p pattern) []language.Span {
	text := t.code
	var found []language.Span
	for pass := 1; ; pass++ {
		t.Look()
		var covered []language.Literal
		for _, m := range p.re().FindAllIndex(text.bytes, -1) {
			if l, in := t.literal(text.pieceAt(m[0]), m[0]); in && pass < maxPasses {
				covered = append(covered, l)
				continue
			}
			found = append(found, text.span(m[0], m[1]))
		}
		if len(covered) == 0 {
			return found
		}
		text = text.without(t.Meter, covered)
	}
}

// literal is the string that a place in the text lies in. A resolved name is code wherever
// it stands: in a string it is an interpolation.
func (t *texts) literal(p piece, at int) (language.Literal, bool) {
	if p.name {
		return language.Literal{}, false
	}
	pos := p.from.Start + at - p.at
	i, found := slices.BinarySearchFunc(t.literals, pos, func(l language.Literal, at int) int { return cmp.Compare(l.Start, at) })
	if !found {
		i--
	}
	// A string within an interpolation comes behind the one around it.
	for back := 0; i >= 0 && back < maxNested; back, i = back+1, i-1 {
		if pos < t.literals[i].End {
			return t.literals[i], true
		}
	}
	return language.Literal{}, false
}

// maxNested is how many strings before a place are asked whether it lies in them.
const maxNested = 64

// without is the text with strings blanked.
func (t text) without(m *language.Meter, literals []language.Literal) text {
	t.bytes = slices.Clone(t.bytes)
	for _, p := range t.pieces {
		if p.name {
			continue
		}
		i, _ := slices.BinarySearchFunc(literals, p.from.Start, func(l language.Literal, at int) int { return cmp.Compare(l.End, at) })
		for ; i < len(literals) && literals[i].Start < p.from.End; i++ {
			from, to := max(literals[i].Start, p.from.Start), min(literals[i].End, p.from.End)
			if m.Take(1 + max(0, to-from)); from < to {
				blank(t.bytes[p.at+from-p.from.Start : p.at+to-p.from.Start])
			}
		}
	}
	return t
}

// inHidden finds matches in the names that have no place of their own.
func (t *texts) inHidden(p pattern) (found []language.Span) {
	for _, m := range p.re().FindAllIndex(t.hidden.bytes, -1) {
		found = append(found, t.hidden.span(m[0], m[1]))
	}
	return found
}

// inValues finds the first match in each string's value.
func (t *texts) inValues(p pattern, literals []language.Literal) (found []language.Span) {
	for _, l := range literals {
		t.Look()
		if m := p.re().FindStringIndex(l.Value); m != nil {
			found = append(found, t.written(l, l.Value[m[0]:m[1]]))
		}
	}
	return found
}
