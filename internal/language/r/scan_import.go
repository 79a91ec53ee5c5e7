package r

import "github.com/llmsandbox/llmsandbox/internal/language"

// imports tells whether a function brings in the package that its first argument names.
func imports(function string) bool {
	switch function {
	case "library", "require", "requireNamespace", "loadNamespace", "attachNamespace", "asNamespace", "getNamespace":
		return true
	}
	return false
}

// library reads library(x), whose argument is a name as it stands.
func (s *reader) library(open int, piped argument) {
	only := s.arg(open, argument{}, -1, "character.only")
	a := s.arg(open, piped, 0, "package")
	if a.none() {
		return
	}
	literal := only.none() || s.is(only.from, "FALSE") || s.is(only.from, "F")
	if literal && a.to == a.from+1 && s.named(a.from) {
		s.Import(s.tokens[a.from].Span, s.tokens[a.from].Text)
		s.quoted = a.from
		return
	}
	s.importOf(a)
}

// importOf brings in the package that an argument names, and returns it.
func (s *reader) importOf(a argument) string {
	if a.none() {
		return ""
	}
	text, ok := s.text(a)
	if !ok {
		s.Compute(s.span(a), language.ComputedImport)
		return ""
	}
	s.Import(s.span(a), text)
	return text
}

// importEach reads lapply(packages, library, character.only = TRUE): the function is the
// argument at i.
func (s *reader) importEach(i int, span language.Span) {
	before, open := s.previous(i-1), s.Outer[i]
	if s.is(before, "<-") || s.is(before, "<<-") || s.is(before, "=") && (open < 0 || !s.is(open, "(")) || s.is(s.next(i+1), "->") {
		return // another name for it, which is followed
	}
	if open < 1 || !s.is(open, "(") || !s.is(before, "(") && !s.is(before, ",") && !s.is(before, "=") {
		s.Compute(span, language.ComputedImport)
		return
	}
	callee := ""
	if s.name(open - 1) {
		callee = s.resolve(s.tokens[open-1].Text)
	}
	if callee == "do.call" || callee == "exists" || callee == "is.function" {
		return
	}
	if s.mapping[open] {
		return // as before in this call
	}
	s.mapping[open] = true
	for _, bounds := range s.Args(s.tokens, open) {
		from, _ := s.bound(bounds)
		if from >= bounds[1] || from <= i && i < bounds[1] {
			continue
		}
		list, end, ok := s.list(from)
		if text, single := s.text(argument{from, bounds[1]}); single {
			list, end, ok = []string{text}, bounds[1], true
		}
		if ok && s.next(end) >= bounds[1] {
			for _, pkg := range list {
				s.Import(s.span(argument{from, bounds[1]}), pkg)
			}
			return
		}
	}
	s.Compute(span, language.ComputedImport)
}
