package r

import (
	"strings"

	"github.com/llmsandbox/llmsandbox/internal/language"
)

// functionOf sees a function that is named by a string. A bare name is the function itself,
// unless only strings are taken, or it is the program's own.
func (s *reader) functionOf(a argument, strings bool, pkg string) {
	if a.none() {
		return
	}
	if text, ok := s.text(a); ok {
		if pkg != "" {
			text = qualify(pkg, text)
		} else if p, name, ok := cutPackage(text); ok {
			text = qualify(p, name)
		}
		s.Use(s.span(a), s.resolve(text), true)
		if imports(text) {
			s.Compute(s.span(a), language.ComputedImport)
		}
		return
	}
	if !strings && (s.is(a.from, "function") || s.is(a.from, "\\") || s.function(a)) {
		return
	}
	s.Compute(s.span(a), language.ComputedName)
}

func cutPackage(text string) (pkg, name string, ok bool) {
	pkg, name, ok = strings.Cut(text, "::")
	return pkg, strings.TrimPrefix(name, ":"), ok
}

// function tells whether an argument is a function by its name, which is then a use of its
// own: not one that the program assigns something else to, or gets passed.
func (s *reader) function(a argument) bool {
	if !s.named(a.from) {
		return false
	}
	_, end := s.written(a.from)
	if s.next(end) < a.to {
		return false
	}
	kind, own := s.owned(a.from)
	return end > a.from+1 || !own && s.assigned[s.tokens[a.from].Text] == 0 || own && kind == ownFunction || s.aliases[s.tokens[a.from].Text] != ""
}

// names sees a vector of functions' names.
func (s *reader) names(a argument) {
	if a.none() {
		return
	}
	list, end, ok := s.list(a.from)
	if text, single := s.text(a); single {
		list, end, ok = []string{text}, a.to, true
	}
	if !ok || s.next(end) < a.to {
		s.Compute(s.span(a), language.ComputedName)
		return
	}
	for _, name := range list {
		s.Use(s.span(a), name, false)
	}
}

// doCall sees do.call(library, list("x")).
func (s *reader) doCall(open int, piped argument) {
	what, args := s.arg(open, piped, 0, "what"), s.arg(open, piped, 1, "args")
	if what.none() {
		return
	}
	function, ok := s.text(what)
	if !ok && s.name(what.from) {
		function, _ = s.written(what.from)
	}
	if !imports(s.resolve(function)) {
		return
	}
	if !args.none() {
		if list, end, ok := s.list(args.from); ok && s.next(end) >= args.to && len(list) > 0 {
			s.Import(s.span(args), list[0])
			return
		}
	}
	s.Compute(s.span(what), language.ComputedImport)
}

// mapped sees the function that another one is given by its name.
func (s *reader) mapped(open int, piped argument, function string) {
	pos := 1
	switch function {
	case "Map", "mapply", "Filter", "Reduce", "Position", "Find":
		pos = 0
	case "apply", "tapply", "outer", "aggregate", "by", "sweep":
		pos = 2
	}
	if a := s.arg(open, piped, pos, "FUN", "f", ".f"); !a.none() {
		if text, ok := s.text(a); ok {
			s.Use(s.span(a), s.resolve(text), true)
		}
	}
}
