package bash

// open reads what an opening bracket begins.
func (s *scanner) open(l *list, pattern bool) {
	switch {
	case pattern:
		s.pos++
	case l.start && s.has("((") && s.arithmetic(2):
		l.loop = 0
	case l.loop > 0 && s.has("((") && s.arithmetic(2):
		l.loop, l.start = 0, true
	case !l.start && len(l.words) == 1 || l.function: // name () defines a function
		s.pos++
		for s.at(0) == ' ' || s.at(0) == '\t' {
			s.facts.Step()
			s.pos++
		}
		if s.at(0) == ')' {
			s.pos++
		}
		if len(l.words) == 1 {
			s.define(l.words[0], l)
		}
		l.words, l.start, l.function, l.sure = nil, true, false, false
	default:
		s.finish(l, false)
		l.level++
		s.pos++
	}
}

// define notes a function.
func (s *scanner) define(w word, l *list) {
	if _, known := s.k.functions[w.value]; known || !w.constant {
		return
	}
	if l.sure && l.level == 0 && len(l.cases) == 0 {
		s.k.functions[w.value] = w.End
	}
}

// next reads a word, or what looks like one.
func (s *scanner) next(l *list, pattern bool) {
	before := s.pos
	if l.start && s.at(0) == '!' && s.at(1) == '(' {
		s.pos++
		return
	}
	w := s.word(l.start || len(l.words) == 0 || !l.called || declares(l.words[0].value))
	if s.pos == before {
		s.pos++
		return
	}
	if (s.at(0) == '<' || s.at(0) == '>') && s.at(1) != '(' && descriptor(w) {
		return
	}
	plain := w.constant && !w.quoted && !w.glob
	switch {
	case l.condition:
		if plain && w.value == "]]" {
			l.condition, l.start = false, false
		}
	case pattern:
		if plain && w.value == "esac" {
			l.cases = l.cases[:len(l.cases)-1]
			l.level--
		}
	case l.selects > 0:
		if l.selects--; plain && w.value == "in" {
			l.selects = 0
			l.cases = append(l.cases, true)
			l.start = true
		}
	case l.loop == 1:
		s.k.set(w.value, "", false)
		l.loop = 2
	case l.loop == 2:
		if plain && w.value == "do" {
			l.loop, l.start = 0, true
		}
	case l.function:
		l.words = append(l.words, w)
		s.define(w, l)
		l.words, l.function, l.start, l.sure = nil, false, true, false
		for s.at(0) == ' ' || s.at(0) == '\t' {
			s.facts.Step()
			s.pos++
		}
		if s.has("()") {
			s.pos += 2
		}
	case l.start && len(l.words) == 0 && plain && s.keyword(w, l):
	default:
		l.called = len(l.words) > 0 && l.called || w.assign == 0
		l.words = append(l.words, w)
		l.start = false
	}
}

// declares tells the commands whose arguments are assignments.
func declares(name string) bool {
	switch name {
	case "declare", "typeset", "local", "export", "readonly", "alias":
		return true
	}
	return false
}
