package r

import "github.com/llmsandbox/llmsandbox/internal/lex"

// owns notes that from i on a name is the program's own, in the function around it.
func (s *reader) owns(name string, i int, kind owned) {
	last := len(s.tokens)
	open := s.Outer[i]
	// Braces without a function are no scope, but ending it early only finds too much.
	if open >= 0 {
		last = s.Partner[open]
		if s.is(open, "(") {
			return
		}
	}
	s.own[name] = append(s.own[name], within{i, last, kind})
}

// maxBody is how many tokens of a body without braces are looked at. One that is taken to
// end too early has too much found in it, not too little.
const maxBody = 200

// parameters finds functions' parameters, which are the program's own in the function.
func (s *reader) parameters() {
	for i := range s.tokens {
		if !s.is(i, "function") && !s.is(i, "\\") || s.tokens[i].Constant || !s.is(i+1, "(") || s.Partner[i+1] < 0 {
			continue
		}
		last := s.Partner[i+1]
		body := s.next(last + 1)
		switch {
		case s.is(body, "{") && s.Partner[body] > 0:
			last = s.Partner[body]
		default:
			for last++; !s.ends(last) && last < i+maxBody; last = s.Skip(last) {
				s.Step()
			}
		}
		for _, arg := range s.Args(s.tokens, i+1) {
			if at := s.next(arg[0]); s.name(at) {
				s.own[s.tokens[at].Text] = append(s.own[s.tokens[at].Text], within{i, last, ownParameter})
			}
		}
	}
}

// maxOwn is how many places of a name of the program's own are looked at.
const maxOwn = 64

// owned tells what of the program's own the name at i is, if it is.
func (s *reader) owned(i int) (owned, bool) {
	places := s.own[s.tokens[i].Text]
	for n := len(places) - 1; n >= max(0, len(places)-maxOwn); n-- {
		s.Step()
		if p := places[n]; p.first <= i && i < p.last {
			return p.kind, true
		}
	}
	return 0, false
}

// changes notes functions that assign to, or take away, names that are given as strings.
func (s *reader) changes(i int) {
	switch s.tokens[i].Text {
	case "rm", "remove", "detach":
		s.removes = true
	case "assign", "delayedAssign", "makeActiveBinding", "list2env", "attach":
		if at := s.next(i + 2); s.kind(at) == lex.String && s.is(at+1, ",") {
			s.assigned[s.tokens[at].Text] += 2
			return
		}
		s.volatile = true
	}
}

// changed notes that part of what a name stands for is assigned: m[1] <-, m$a <-, f(m) <-.
func (s *reader) changed(target int) {
	i := target
	for steps := 0; i >= 0 && steps < maxOwn; steps++ {
		s.Step()
		switch {
		case s.Partner[i] >= 0 && s.Partner[i] < i && !s.is(i, ")"):
			i = s.Partner[i] - 1
			if s.is(i, "[[") || s.is(i, "[") {
				i--
			}
		case s.is(i, ")") && s.Partner[i] >= 0:
			i = s.next(s.Partner[i] + 1)
			if !s.name(i) {
				return
			}
		case s.is(i-1, "$") || s.is(i-1, "@"):
			i -= 2
		default:
			if s.name(i) {
				s.assigned[s.tokens[i].Text] += 2
			}
			return
		}
	}
}
