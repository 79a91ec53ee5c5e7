package java

import (
	"slices"
	"strings"

	"github.com/llmsandbox/llmsandbox/internal/language"
	"github.com/llmsandbox/llmsandbox/internal/lex"
)

// importAt reads an import.
func (s *reader) importAt(i int) {
	i++
	static, module := false, false
	if s.is(i, "static") {
		static = true
		i++
	} else if s.is(i, "module") && s.kind(i+1) == lex.Name {
		module = true
		i++
	}
	name, end := s.chain(i)
	if name == "" {
		return
	}
	span := language.Span{Start: s.tokens[i].Start, End: s.tokens[end-1].End}
	all := s.is(end, ".") && s.is(end+1, "*")
	last := strings.LastIndexByte(name, '.')
	if strings.HasPrefix(name, "javax.script") || strings.HasPrefix(name, "jdk.jshell") || strings.HasPrefix(name, "groovy.") {
		s.scripts = true
	}
	switch {
	case module:
		for pkg := range listed() {
			s.packages[pkg] = true
		}
	case static && all:
		if slices.Contains(s.classes, name) {
			break
		}
		if s.classes = append(s.classes, name); len(s.classes) > maxClasses {
			s.classes = s.classes[:maxClasses]
			s.Trouble("it imports the members of more classes than are looked at")
		}
	case static && last > 0:
		s.statics[name[last+1:]] = name
		name = name[:last]
		span.End = s.tokens[end-3].End
	case all:
		if !s.packages[name] && !listed()[name] && len(s.others) < maxClasses {
			s.others = append(s.others, name)
		}
		s.packages[name] = true
	default:
		s.imported[name[last+1:]] = name
	}
	s.Import(span, name)
}
