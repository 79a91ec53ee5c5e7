package java

import (
	"strings"

	"github.com/llmsandbox/llmsandbox/internal/language"
	"github.com/llmsandbox/llmsandbox/internal/lex"
)

// scan reads a Java program, or a cell of a kernel, by its tokens. Names are qualified:
// those of classes by imports, those of members by the classes that variables are declared
// with, as far as that takes no knowledge of other classes.
func scan(m *language.Meter, code []byte) language.Facts {
	edited := unescape(code)
	s := reader{
		Facts:    lex.Facts{Meter: m},
		imported: map[string]string{}, packages: map[string]bool{}, statics: map[string]string{}, top: map[string]bool{}, own: map[string][][2]int{}, variables: map[string][]string{}, elements: map[string]string{}, mirrors: map[string]string{},
		results: map[int]string{}, reflected: map[int]string{}, constants: map[string]string{}, assigned: map[string]int{}, brought: map[string]bool{}, budget: lex.BudgetOf(len(code)),
	}
	if edited != nil {
		s.lex(edited.Code)
	} else {
		s.lex(code)
	}
	s.Brackets = lex.Pair(s.tokens)
	s.declarations()
	for i := range s.tokens {
		s.use(i)
	}
	if edited != nil {
		edited.Restore(&s.Facts.Facts)
	}
	return s.Ordered()
}

// A reader collects the facts of one file. Classes are by their whole names.
type reader struct {
	lex.Facts
	tokens []lex.Token
	lex.Brackets
	imported  map[string]string   // classes by their names in the file
	statics   map[string]string   // members by theirs
	packages  map[string]bool     // packages all of whose classes are imported
	others    []string            // those of them that are not the JDK's
	classes   []string            // classes all of whose members are
	top       map[string]bool     // the file's own classes
	own       map[string][][2]int // where those are known that are in others
	variables map[string][]string // the classes that variables are declared with
	elements  map[string]string   // the class that a supplier or a collection of a name has
	mirrors   map[string]string   // the class that a variable of class Class stands for
	results   map[int]string      // the class of what a call returns, by its closing bracket
	reflected map[int]string      // the class that such a result of class Class stands for
	constants map[string]string   // strings that are assigned once
	assigned  map[string]int
	brought   map[string]bool // classes whose use was told as an import
	pending   string          // a variable whose class is that of what it is assigned
	done      int             // where the name ends that was looked at last
	scripts   bool            // there are imports of what runs other code
	budget    lex.Budget
}

// is tells whether the token at i, which need not be there, is text.
func (s *reader) is(i int, text string) bool {
	return i >= 0 && i < len(s.tokens) && s.tokens[i].Is(text)
}

func (s *reader) kind(i int) lex.Kind {
	if i < 0 || i >= len(s.tokens) {
		return 0
	}
	return s.tokens[i].Kind
}

// libraryName is an artifact of Maven's without a version.
func libraryName(canonical string) string {
	group, rest, _ := strings.Cut(canonical, ":")
	artifact, _, _ := strings.Cut(rest, ":")
	return group + ":" + artifact
}
