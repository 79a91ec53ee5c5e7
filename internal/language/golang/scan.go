package golang

import (
	"go/scanner"
	"go/token"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/llmsandbox/llmsandbox/internal/language"
	"github.com/llmsandbox/llmsandbox/internal/lex"
)

const (
	// maxPackages bounds how many packages one name may stand for. Honest programs have a few
	// whose paths end in the same version.
	maxPackages = 32
	// maxName bounds how long the name of a package's member may be: each use of it is a
	// copy of the package's path.
	maxName = 512
)

var (
	// builtins are the functions that are there without an import.
	builtins = lex.Words("append cap clear close complex copy delete imag len make max min new panic print println real recover")
	// reflective are the methods that look a name up.
	reflective = lex.Words("MethodByName FieldByName")
	// loading are the functions that load code.
	loading = lex.Words("plugin.Open")
)

// scan reads a file, a snippet or a cell of a kernel by its tokens. Tokens are there where
// go/parser has no tree: without a package's clause, with imports between statements, and in
// code that is nested so deeply that the parser gives up, or that walking its tree would
// overflow the stack. Scopes are not looked at: whatever is written like a member of an
// imported package counts as one.
func scan(m *language.Meter, code []byte) language.Facts {
	s := reader{Facts: lex.Facts{Meter: m}, packages: map[string][]string{}, aliases: map[string]int{}}
	s.tokenize(code)
	s.imports()
	s.assignments()
	for i, t := range s.Tokens {
		if t.Kind == lex.Name {
			s.name(i)
		}
	}
	return s.Ordered()
}

// A reader collects the facts of one file.
type reader struct {
	lex.Facts
	lex.Stream                     // whose brackets are of no interest
	packages   map[string][]string // paths by name; under "." those whose members need no name
	aliases    map[string]int      // where the member is that a name was given: the index of its package's name
}

// imports finds them; a cell may have them anywhere.
func (s *reader) imports() {
	grouped := false
	for i, t := range s.Tokens {
		switch {
		case t.Is("import"):
			grouped = s.Is(i+1, "(")
		case t.Is(")"):
			grouped = false
		case t.Kind == lex.String && (grouped || s.Is(i-1, "import") || s.Is(i-2, "import")):
			s.Import(t.Span, t.Text)
			names := defaultNames(t.Text)
			if before := &s.Tokens[i-1]; before.Kind == lex.Name || before.Is(".") {
				names = []string{before.Text}
			}
			for _, name := range names {
				s.bind(name, t.Text)
			}
		}
	}
}

// bind says that name stands for the package at path, among others: a default name may be
// wrong, and is not to hide the package that has it.
func (s *reader) bind(name, path string) {
	have := s.packages[name]
	s.Take(len(have))
	switch {
	case name == "_" || path == "" || slices.Contains(have, path):
	case len(have) == maxPackages:
		s.MarkUnreadable("more packages are imported under one name than are looked at")
	default:
		s.packages[name] = append(have, path)
	}
}

// defaultNames are what a package may be called that is imported without a name: the last
// element of its path, mostly.
func defaultNames(of string) []string {
	base := path.Base(of)
	names := []string{base}
	if isVersion(base) {
		base = path.Base(path.Dir(of))
		names = append(names, base)
	}
	if ext := path.Ext(base); ext != "" && isVersion(ext[1:]) {
		base = strings.TrimSuffix(base, ext)
		names = append(names, base)
	}
	short := strings.TrimSuffix(strings.TrimSuffix(strings.TrimPrefix(base, "go-"), "-go"), ".go")
	return append(names, short, strings.ReplaceAll(base, "-", ""), strings.ReplaceAll(base, "-", "_"))
}

func isVersion(s string) bool {
	if len(s) < 2 || s[0] != 'v' {
		return false
	}
	_, err := strconv.Atoi(s[1:])
	return err == nil
}

// assignments finds plain names that stand for a package's member.
func (s *reader) assignments() {
	for i, t := range s.Tokens {
		if t.Kind != lex.Name || s.Is(i-1, ".") || s.Is(i-1, ",") {
			continue
		}
		at := i + 1
		if s.Kind(at) == lex.Name { // a type of one word
			at++
		}
		if !s.Is(at, ":=") && !s.Is(at, "=") || !s.member(at+1) || !s.ends(at+4) {
			continue
		}
		if _, ok := s.aliases[t.Text]; !ok {
			s.aliases[t.Text] = at + 1
		}
	}
}

// member tells whether a package's name, a dot and a name are at i.
func (s *reader) member(i int) bool {
	return s.Kind(i) == lex.Name && s.Is(i+1, ".") && s.Kind(i+2) == lex.Name && s.packages[s.Tokens[i].Text] != nil
}

func (s *reader) ends(i int) bool {
	return i >= len(s.Tokens) || s.Is(i, ";") || s.Is(i, ")") || s.Is(i, "}") || s.Is(i, ",")
}

// name adds what the name at i uses.
func (s *reader) name(i int) {
	t := s.Tokens[i]
	alias, aliased := s.aliases[t.Text]
	switch {
	case s.Is(i-1, "func"): // is declared here
	case s.Is(i-1, "."):
		if reflective()[t.Text] && !s.literal(i+1) {
			s.Compute(t.Span, language.ComputedName)
		}
	case s.member(i):
		s.use(language.Span{Start: t.Start, End: s.Tokens[i+2].End}, t.Text, i+2, i+3)
	case aliased && (s.Is(i+1, "(") || s.Is(i+1, ".")):
		s.use(t.Span, s.Tokens[alias].Text, alias+2, i+1)
	case builtins()[t.Text] && s.Is(i+1, "("):
		s.Use(t.Span, t.Text, true)
	case token.IsExported(t.Text) && !s.key(i):
		s.use(t.Span, ".", i, i+1)
	}
}

// use adds a use of the member at i of the packages of that name. What comes behind it tells
// whether it is called, and with what.
func (s *reader) use(at language.Span, packages string, i, behind int) {
	for _, path := range s.packages[packages] {
		name := s.Tokens[i].Text
		if len(path)+len(name) > maxName {
			s.MarkUnreadable("a name in it is longer than what is looked at")
			continue
		}
		name = path + "." + name
		s.Take(len(name))
		s.Use(at, name, s.Is(behind, "("))
		if loading()[name] && !s.literal(behind) {
			s.Compute(at, language.ComputedImport)
		}
	}
}

// literal tells whether there are brackets at open with a plain string and nothing else. What
// is not called at once may be called with anything.
func (s *reader) literal(open int) bool {
	return s.Is(open, "(") && s.Kind(open+1) == lex.String && s.Tokens[open+1].Constant && s.Is(open+2, ")")
}

// key tells whether a name is that of a field in a composite literal.
func (s *reader) key(i int) bool { return s.Is(i+1, ":") && (s.Is(i-1, "{") || s.Is(i-1, ",")) }

// tokenize has Go's own scanner make the tokens.
func (s *reader) tokenize(code []byte) {
	file := token.NewFileSet().AddFile("", -1, len(code))
	whole := string(code)
	var sc scanner.Scanner
	sc.Init(file, code, func(at token.Position, msg string) {
		s.MarkUnreadable("line " + strconv.Itoa(at.Line) + ": " + msg)
	}, scanner.ScanComments)
	s.Tokens = make([]lex.Token, 0, len(code)/3+8)
	for {
		s.Step()
		pos, tok, text := sc.Scan()
		start := file.Offset(pos)
		t := lex.Token{Span: language.Span{Start: start, End: end(whole, start, text)}, Kind: lex.Punct, Text: text}
		switch {
		case tok == token.EOF:
			return
		case tok == token.COMMENT:
			s.Comment(t.Start, t.End)
			s.directive(t.Start, whole[t.Start:t.End])
			continue
		case tok == token.STRING || tok == token.CHAR:
			value, err := strconv.Unquote(text)
			t.Kind, t.Text, t.Constant = lex.String, value, err == nil
			s.String(language.Literal{Span: t.Span, Value: value})
		case tok == token.IDENT:
			t.Kind = lex.Name
		case tok.IsLiteral():
			t.Kind = lex.Number
		case tok == token.SEMICOLON:
			t.Text = ";" // not the newline that stands for it
		case tok.IsOperator():
			t.Text = tok.String()
		}
		if len(s.Tokens) == cap(s.Tokens) {
			// There are at most as many as bytes are left: one step instead of many copies.
			s.Tokens = slices.Grow(s.Tokens, len(code)-start+1)
		}
		s.Tokens = append(s.Tokens, t)
	}
}

// end is where a token at start ends. The scanner's text does not always tell, since it
// leaves out carriage returns.
func end(code string, start int, text string) int {
	c := lex.Cursor{Code: code, Pos: start + 1}
	switch {
	case strings.HasPrefix(text, "`"):
		c.Through("`")
	case strings.HasPrefix(text, "/*"):
		c.Pos++
		c.Through("*/")
	case strings.HasPrefix(text, "//"):
		c.To("\n")
	default:
		return min(start+len(text), len(code))
	}
	return c.Pos
}

// directive adds what a comment tells the compiler to use: the directive itself, and the
// name that it links to.
func (s *reader) directive(start int, comment string) {
	if !strings.HasPrefix(comment, "//go:") {
		return
	}
	words := strings.Fields(comment)
	s.Use(language.Span{Start: start, End: start + len(words[0])}, words[0], false)
	if words[0] == "//go:linkname" && len(words) == 3 {
		at := start + strings.LastIndex(comment, words[2])
		s.Use(language.Span{Start: at, End: at + len(words[2])}, words[2], false)
	}
}
