package bash

import (
	"strings"

	"github.com/llmsandbox/llmsandbox/internal/language"
	"github.com/llmsandbox/llmsandbox/internal/lex"
)

// maxNesting bounds how deep commands lie in commands.
const maxNesting = 250

// scan reads a script. Its uses are the commands by their names without folders, those
// that other commands start ("sudo", "xargs", "find -exec") included, "/dev/tcp" for a
// redirection to there, and no options. Its imports are files that are sourced, or given
// to a shell. Code on a shell's standard input that is not in the script is computed code.
func scan(m *language.Meter, code []byte) language.Facts {
	k := &knowledge{functions: map[string]int{}, variables: map[string]*variable{}}
	var facts lex.Facts
	for pass := 0; pass < 2; pass++ {
		facts = lex.Facts{Meter: m}
		s := &scanner{src: code, text: &text{code: code}, facts: &facts, k: k}
		if strings.HasPrefix(string(code[:min(3, len(code))]), "\xef\xbb\xbf") {
			s.pos = 3
		}
		s.script()
		if !k.wanted {
			break
		}
		k.told = true
	}
	return facts.Ordered()
}

// knowledge is what is known of a script's names.
type knowledge struct {
	functions map[string]int // where each was surely defined first; -1: nobody knows
	variables map[string]*variable
	wanted    bool // a command's name is a variable
	told      bool // all bindings of variables are known
}

// A variable is one whose value may be known.
type variable struct {
	value string
	bound int // how often it is set; more than once: its value is not known
}

func (k *knowledge) set(name, value string, constant bool) {
	if k.told || name == "" {
		return
	}
	v := k.variables[name]
	if v == nil {
		v = &variable{}
		k.variables[name] = v
	}
	if v.bound++; !constant {
		v.bound = 2
	}
	v.value = value
}

// A scanner reads one piece of code.
type scanner struct {
	src     []byte
	text    *text
	pos     int
	facts   *lex.Facts
	k       *knowledge
	depth   int
	nested  bool // the code lies in a string
	pending []*document
	fed     *feed
}

// feed is what comes to a command on its standard input, as far as the script says.
type feed struct {
	value    string
	at       language.Span
	constant bool
	file     bool
}

// script reads commands to the end of the code.
func (s *scanner) script() {
	for s.pos < len(s.src) {
		s.facts.Step()
		s.commands(0)
		if s.pos < len(s.src) { // what closes nothing
			s.facts.Trouble("a bracket is closed that was not opened")
			s.pos++
		}
	}
	s.documents()
}

// code reads commands that are the value of the string at a place.
func (s *scanner) code(at language.Span, value string) {
	s.facts.Nested(at, func() {
		inner := []byte(value)
		n := &scanner{src: inner, text: &text{code: inner}, facts: s.facts, k: s.k, depth: s.depth, nested: true}
		n.script()
	})
}

func (s *scanner) at(n int) byte {
	if s.pos+n < len(s.src) && s.pos+n >= 0 {
		return s.src[s.pos+n]
	}
	return 0
}

func (s *scanner) has(text string) bool {
	return len(s.src)-s.pos >= len(text) && string(s.src[s.pos:s.pos+len(text)]) == text
}

// deeper goes down one level, unless there are too many.
func (s *scanner) deeper() bool {
	if s.depth >= maxNesting {
		s.facts.Trouble("commands lie in commands too deep")
		return false
	}
	s.depth++
	return true
}
