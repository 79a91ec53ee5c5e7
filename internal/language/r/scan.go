package r

import (
	"strings"

	"github.com/llmsandbox/llmsandbox/internal/language"
	"github.com/llmsandbox/llmsandbox/internal/lex"
)

// scan reads an R program by its tokens. Names of packages that R attaches by itself are
// bare ("system"), those of others are written with theirs where the program does so
// ("httr::GET").
func scan(m *language.Meter, code []byte) language.Facts {
	facts := lex.Facts{Meter: m}
	read(&facts, code)
	return facts.Ordered()
}

func read(facts *lex.Facts, code []byte) {
	s := reader{Facts: facts, aliases: map[string]string{}, constants: map[string]string{}, lists: map[string][]string{}, assigned: map[string]int{}, mapping: map[int]bool{}, quoted: -1, environments: map[string]bool{}, budget: lex.BudgetOf(len(code))}
	s.tokens = tokens(facts, code)
	s.Brackets = lex.Pair(s.tokens)
	s.assignments()
	s.parameters()
	for i := range s.tokens {
		s.use(i)
	}
}

// A reader collects the facts of one piece of code.
type reader struct {
	*lex.Facts
	tokens []lex.Token
	lex.Brackets
	aliases      map[string]string   // what names were assigned that stand for functions
	constants    map[string]string   // strings that are assigned once
	lists        map[string][]string // the same of vectors of strings
	assigned     map[string]int      // how often a name is assigned
	own          map[string][]within // where names are the program's own
	environments map[string]bool     // names of environments
	mapping      map[int]bool        // calls whose packages are known
	quoted       int                 // the last name that is taken as it stands
	removes      bool                // names may be taken back
	volatile     bool                // names may be assigned whose name is computed
	budget       lex.Budget
}

// within are the tokens from first up to last, in which a name is what kind says.
type within struct {
	first, last int
	kind        owned
}

type owned uint8

const (
	ownVariable  owned = iota // a value, which calls look past
	ownFunction               // a function
	ownParameter              // whatever the caller passes
)

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

// name tells whether the token at i is a name and no keyword.
func (s *reader) name(i int) bool { return s.kind(i) == lex.Name && !keyword(s.tokens[i]) }

// next is the first token from i on that is no newline.
func (s *reader) next(i int) int {
	for s.kind(i) == lex.Newline {
		s.Step()
		i++
	}
	return i
}

func (s *reader) previous(i int) int {
	for s.kind(i) == lex.Newline {
		s.Step()
		i--
	}
	return i
}

// ends tells whether an expression ends before the token at i.
func (s *reader) ends(i int) bool {
	return i >= len(s.tokens) || s.kind(i) == lex.Newline || s.is(i, ";") || s.is(i, "}") || s.is(i, ")") || s.is(i, ",") || s.is(i, "]")
}

// libraryName is the name without a version. CRAN's names have a case.
func libraryName(canonical string) string {
	name, _, _ := strings.Cut(canonical, "@")
	return name
}
