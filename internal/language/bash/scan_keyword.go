package bash

import "strings"

// keyword reads one where a command begins.
func (s *scanner) keyword(w word, l *list) bool {
	switch w.value {
	case "if", "while", "until", "{":
		l.level++
		l.sure = false
	case "then", "elif", "else", "do", "!", "time":
	case "coproc":
		s.title()
	case "fi", "done", "}", "esac":
		if l.level > 0 {
			l.level--
		}
		if w.value == "esac" && len(l.cases) > 0 {
			l.cases = l.cases[:len(l.cases)-1]
		}
	case "for", "select":
		l.level++
		l.loop, l.start = 1, false
	case "case":
		l.level++
		l.selects, l.start = 2, false
	case "function":
		l.function, l.start = true, false
	case "[[":
		l.condition, l.start = true, false
	default:
		return false
	}
	if w.value == "time" {
		s.facts.Use(w.Span, "time", true)
		for s.at(0) == ' ' {
			s.facts.Step()
			s.pos++
		}
		if s.has("-p") {
			s.pos += 2
		}
	}
	return true
}

// title goes over the name of a coprocess, which only a compound command has.
func (s *scanner) title() {
	for i := s.pos; i < len(s.src) && i < s.pos+256; i++ {
		s.facts.Step()
		if c := s.src[i]; c == ' ' || c == '\t' {
			text := strings.TrimSpace(string(s.src[s.pos:i]))
			rest := strings.TrimLeft(string(s.src[i:min(len(s.src), i+256)]), " \t")
			if !name(text) {
				continue
			}
			first, _, _ := strings.Cut(strings.ReplaceAll(rest, "\n", " "), " ")
			switch {
			case text == "while" || text == "until" || text == "if" || text == "case" || text == "for" || text == "select":
			case strings.HasPrefix(rest, "("), first == "{", first == "while", first == "until", first == "if", first == "case", first == "for", first == "select", first == "[[":
				s.pos = i
			}
			return
		}
	}
}
