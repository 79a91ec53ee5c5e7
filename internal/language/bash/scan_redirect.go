package bash

import (
	"strings"

	"github.com/llmsandbox/llmsandbox/internal/language"
)

// descriptor tells whether a word before a redirection says what is redirected.
func descriptor(w word) bool {
	if !w.constant || w.quoted {
		return false
	}
	if strings.HasPrefix(w.value, "{") && strings.HasSuffix(w.value, "}") {
		return name(w.value[1 : len(w.value)-1])
	}
	return strings.Trim(w.value, "0123456789") == ""
}

// redirect reads a redirection.
func (s *scanner) redirect(l *list) {
	start := s.pos
	for _, op := range []string{"<<<", "<<-", "<<", "<>", "<&", ">>", ">&", ">|", "<", ">"} {
		if !s.has(op) {
			continue
		}
		s.pos += len(op)
		for s.at(0) == ' ' || s.at(0) == '\t' || s.at(0) == '\\' && s.at(1) == '\n' {
			s.facts.Step()
			if s.at(0) == '\\' {
				s.pos++
			}
			s.pos++
		}
		w := s.word(false)
		switch op {
		case "<<", "<<-":
			s.fed = &feed{at: language.Span{Start: start, End: s.pos}}
			s.pending = append(s.pending, &document{end: w.value, literal: w.quoted, tabs: op == "<<-", feed: s.fed})
		case "<<<":
			s.fed = &feed{value: w.value, constant: w.constant, at: w.Span}
		case "<":
			s.fed = &feed{value: w.value, constant: w.constant, at: w.Span, file: true}
		}
		for _, device := range []string{"/dev/tcp", "/dev/udp"} {
			if op[0] != '<' || op == "<" || op == "<>" || op == "<&" {
				if strings.Contains(w.value, device+"/") {
					s.facts.Use(w.Span, device, false)
				}
			}
		}
		return
	}
	s.pos++
}
