package ruby

import (
	"path"
	"strings"

	"github.com/llmsandbox/llmsandbox/internal/language"
	"github.com/llmsandbox/llmsandbox/internal/lex"
)

const (
	// maxDepth bounds how deep an expression is followed.
	maxDepth = 100
	// maxSources bounds how many values of one variable are looked at.
	maxSources = 16
	// maxText bounds a text that is put together.
	maxText = 1 << 16
)

// A scan is the reading of one program, or of one in a string of it.
type scan struct {
	facts  *lex.Facts
	code   string
	tokens []token
	vars   []*binding          // the local variables, by token
	shared map[string]*binding // constants and the variables that are not local
	owners []*owner            // by token, where names may be methods
	top    *owner
	alias  map[string]string // new names of methods
	known  map[int]value     // of arguments, by the tokens they begin at
	depth  int
}

// scanCode implements [language.Scan].
func scanCode(m *language.Meter, code []byte) language.Facts {
	facts := lex.Facts{Meter: m}
	read(&facts, code)
	return facts.Ordered()
}

// read adds what code says to facts.
func read(facts *lex.Facts, code []byte) {
	s := &scan{facts: facts, code: string(code), shared: map[string]*binding{}, alias: map[string]string{}, known: map[int]value{}}
	l := lexer{Cursor: lex.Cursor{Code: code}, text: s.code, facts: facts, locals: map[string]bool{}}
	l.run()
	s.tokens = l.tokens
	s.bind()
	for i := range s.tokens {
		if s.heads(i) {
			s.chain(i, true)
		}
	}
}

// nested reads code that is the value of a string.
func (s *scan) nested(code string, at language.Span) {
	s.facts.Nested(at, func() { read(s.facts, []byte(code)) })
}

// at is token i; where there is none, one that is nothing.
func (s *scan) at(i int) *token {
	if i < 0 || i >= len(s.tokens) {
		return &token{pair: -1, in: -1}
	}
	return &s.tokens[i]
}

// over goes over a token, or a bracket or a literal with what is in it.
func (s *scan) over(i int) int {
	if p := s.tokens[i].pair; p > i {
		return min(p+1, len(s.tokens))
	}
	return i + 1
}

// moduleName is the name of the library that a program requires so: without a file's ending,
// and without the folder that Ruby's own libraries lie in.
func moduleName(text string) string {
	name := strings.TrimSuffix(strings.TrimSuffix(text, ".rb"), ".so")
	if name == "" {
		return ""
	}
	if strings.HasPrefix(name, ".") {
		return name
	}
	name = path.Clean(name)
	if !path.IsAbs(name) {
		return name
	}
	if at := strings.LastIndex(name, "/lib/"); at >= 0 && strings.Contains(name[:at], "/gems/") {
		return name[at+len("/lib/"):]
	}
	_, own, ok := strings.Cut(name, "/ruby/")
	if !ok {
		return name
	}
	for {
		first, rest, more := strings.Cut(own, "/")
		if !more || first != "vendor_ruby" && first != "site_ruby" && !isDigit(first[0]) && !strings.Contains(first, "-linux") {
			return own
		}
		own = rest
	}
}

// libraryName is the gem that an entry of a list of libraries asks for.
func libraryName(canonical string) string {
	name, _, _ := strings.Cut(canonical, ":")
	return strings.ToLower(name)
}
