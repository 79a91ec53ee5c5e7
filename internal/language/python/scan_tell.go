package python

import "github.com/llmsandbox/llmsandbox/internal/language"

// use, compute and imports tell facts in the last pass.
func (s *scanner) use(at language.Span, name string, call bool) {
	if s.emit {
		s.facts.Use(at, name, call)
	}
}

func (s *scanner) compute(at language.Span, kind language.ComputedKind) {
	if s.emit {
		s.facts.Compute(at, kind)
	}
}

func (s *scanner) imports(at language.Span, module string) {
	if s.emit {
		s.facts.Import(at, module)
	}
}
