package cpp

import (
	"bytes"
	"path"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/llmsandbox/llmsandbox/internal/language"
	"github.com/llmsandbox/llmsandbox/internal/lex"
)

// scan reads a C++ program by its tokens. What C's library has is bare ("system" for std::system and
// ::system), all else is qualified as it is written, with the program's own names for namespaces, types
// and functions resolved ("std::filesystem::remove_all"). Macros are not expanded: one that stands for
// a name is that name, one that makes names is computed, and their bodies are read as code.
func scan(m *language.Meter, code []byte) language.Facts {
	return scanAs(m, code, &table)
}

// scanC reads a C program as scan does. Standards and compilers differ on whether C has raw strings and
// separators of digits.
func scanC(m *language.Meter, code []byte) language.Facts {
	if !differs().Match(code) {
		return scan(m, code)
	}
	return scanAs(m, code, &table, &plainTable)
}

// differs finds what may be a raw string or a separator of digits.
var differs = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`R"|[0-9A-Za-z_]'`) })

// scanAs reads a program by each table. What any reading finds is there.
func scanAs(m *language.Meter, code []byte, tables ...*lex.Table) language.Facts {
	facts := read(m, code, tables[0], false)
	all := lex.Facts{Facts: facts, Meter: m}
	also := func(other language.Facts) {
		all.Merge(language.Facts{Imports: other.Imports, Uses: other.Uses, Computed: other.Computed})
	}
	for _, t := range tables[1:] {
		also(read(m, code, t, false))
	}
	// They mean something in some standards, and nothing in others.
	if trigraphs := bytes.Contains(code, []byte("??")); trigraphs {
		for _, t := range tables {
			also(read(m, code, t, true))
		}
	} else if len(tables) == 1 {
		return facts
	}
	facts = all.Ordered()
	facts.Imports, facts.Uses, facts.Computed = slices.Compact(facts.Imports), slices.Compact(facts.Uses), slices.Compact(facts.Computed)
	return facts
}

func read(m *language.Meter, code []byte, t *lex.Table, trigraphs bool) language.Facts {
	l := lexer{original: string(code)}
	l.Table, l.Facts, l.Code = t, &lex.Facts{Meter: m}, l.original
	if l.edited = join(m, l.original, trigraphs); l.edited != nil {
		l.Code = l.edited.Code
	}
	l.run()
	r := &reader{Facts: l.Facts, names: lex.Names{}, open: map[string]bool{}, own: map[string]bool{}, macros: map[string]macro{}}
	r.split(l.Tokens)
	for _, s := range r.streams {
		r.declare(s)
	}
	for _, name := range r.opened {
		for _, of := range r.meanings(language.Span{}, name) {
			r.open[r.plain(of, false)] = true
		}
	}
	for _, s := range r.streams {
		for i := range s.Tokens {
			r.use(s, i)
		}
	}
	if l.edited != nil {
		l.edited.Restore(&r.Facts.Facts)
	}
	return l.Ordered()
}

// The third characters of trigraphs, and what those stand for.
const trigraphThird, trigraphMeaning = "=/'()!<>-", "#\\^[]|{}~"

// trigraph is what three characters at i mean to standards before C++17, or empty.
func trigraph(code string, i int) string {
	if i+2 < len(code) && code[i] == '?' && code[i+1] == '?' {
		if n := strings.IndexByte(trigraphThird, code[i+2]); n >= 0 {
			return trigraphMeaning[n : n+1]
		}
	}
	return ""
}

// join is the code with lines joined that end in a backslash, which only white space comes behind, as
// compilers take it; nil where there are none.
func join(m *language.Meter, code string, trigraphs bool) *lex.Edited {
	return lex.Edit(m, code, "\\?", func(i int) (text string, n int) {
		if text, n = code[i:i+1], 1; text == "?" {
			if text, n = trigraph(code, i), 3; text == "" || !trigraphs {
				return "", 0
			}
		}
		if text == "\\" {
			rest := strings.TrimLeft(code[i+n:], " \t\r\v\f")
			if strings.HasPrefix(rest, "\n") {
				return "", len(code) - len(rest) + 1 - i
			} else if n == 1 {
				return "", 0
			}
		}
		return text, n
	})
}

// A reader collects what a program uses.
type reader struct {
	*lex.Facts
	streams []*stream
	names   lex.Names       // what the program's own names stand for
	opened  []string        // namespaces whose names are used as they are, as they are written
	open    map[string]bool // and what they stand for
	own     map[string]bool // the program's own classes
	macros  map[string]macro
	// conditional tells that some of the code may not be compiled: it hides nothing then that matters.
	conditional bool
}

// A macro is what is known of a name that the preprocessor replaces.
type macro struct {
	function bool
	pastes   bool // it makes names
	opaque   bool // it may be more than a name
}

// A stream is a list of tokens with their brackets: those of the program, or of a directive, whose
// brackets need not be balanced.
type stream struct {
	lex.Stream
	named    bool           // all of it is one name
	braces   map[int]bool   // of classes
	classes  map[string]int // those by the class's name
	methods  map[int]string // the class of methods that are outside of it, by their braces
	declared lex.Scopes
}

func (r *reader) add(tokens []lex.Token) *stream {
	s := &stream{Stream: lex.NewStream(tokens)}
	r.streams = append(r.streams, s)
	return s
}

// split parts the tokens of the program from its directives.
func (r *reader) split(tokens []lex.Token) {
	main := make([]lex.Token, 0, len(tokens))
	for len(tokens) > 0 {
		r.Step()
		end := slices.IndexFunc(tokens, func(t lex.Token) bool { return t.Kind == lex.Newline })
		if end < 0 {
			end = len(tokens)
		}
		if tokens[0].Is("#") {
			r.directive(tokens[1:end])
		} else {
			main = append(main, tokens[:end]...)
		}
		tokens = tokens[min(end+1, len(tokens)):]
	}
	r.add(main)
}

func (r *reader) directive(tokens []lex.Token) {
	if len(tokens) == 0 || tokens[0].Kind != lex.Name {
		return
	}
	switch rest := tokens[1:]; tokens[0].Text {
	case "define":
		if len(rest) > 0 && rest[0].Kind == lex.Name {
			r.define(rest[0], rest[1:])
		}
	case "include", "include_next", "import":
		r.include(tokens[0].Span, rest)
	case "embed":
		r.Use(tokens[min(1, len(rest))].Span, "#embed", false)
	case "if", "ifdef", "ifndef", "else", "elif", "elifdef", "elifndef":
		r.conditional = true
	case "pragma", "ident":
		r.add(rest)
	}
}

// include reads the name of a header, which a macro may stand for.
func (r *reader) include(at language.Span, rest []lex.Token) {
	if len(rest) == 0 {
		r.Compute(at, language.ComputedImport)
		return
	}
	if rest[0].Kind == lex.String {
		r.Import(rest[0].Span, header(rest[0].Text))
		return
	}
	r.Compute(language.Span{Start: rest[0].Start, End: rest[len(rest)-1].End}, language.ComputedImport)
}

// header is a header's name from the directory on that headers are looked for in: there are longer ways
// to say the same.
func header(name string) string {
	name = strings.TrimPrefix(path.Clean("/"+strings.ReplaceAll(strings.TrimSpace(name), "\\", "/")), "/")
	if i := strings.LastIndex("/"+name, "/include/"); i >= 0 {
		name = name[i+len("include/"):]
	}
	if first, rest, ok := strings.Cut(name, "/"); ok && strings.Contains(first, "-linux-") {
		name = rest
	}
	return name
}

// define reads a macro. One that is a name, or the parts of one, stands for it; but whether it is
// defined where it is used is not told, so that it stands for itself, too.
func (r *reader) define(name lex.Token, body []lex.Token) {
	m := r.macros[name.Text]
	if len(body) > 0 && body[0].Is("(") && body[0].Start == name.End {
		m.function = true
		end := slices.IndexFunc(body, func(t lex.Token) bool { return t.Is(")") })
		body = body[end+1:]
	}
	s := r.add(body)
	to, end := r.chain(s, 0)
	s.named = to != "" && end == len(body)
	if slices.ContainsFunc(body, func(t lex.Token) bool { return t.Is("##") }) {
		m.pastes = true
		to = joined(body)
	}
	if s.named || m.pastes && !m.function {
		r.bind(name, to)
		r.bind(name, name.Text)
	}
	words := !slices.ContainsFunc(body, func(t lex.Token) bool { return t.Kind != lex.Name || expression()[t.Text] })
	m.opaque = m.opaque || !m.function && !s.named && (!words || len(body) == 0)
	r.macros[name.Text] = m
}

// joined is the name that names and numbers make when they are pasted.
func joined(tokens []lex.Token) string {
	var b strings.Builder
	for _, t := range tokens {
		if t.Kind == lex.Name || t.Kind == lex.Number {
			b.WriteString(t.Text)
		}
	}
	return b.String()
}

// bind notes what a name stands for. Of a name that stands for more than is kept, it is not known.
func (r *reader) bind(name lex.Token, to string) {
	if !r.names.Bind(name.Text, to) {
		r.Compute(name.Span, language.ComputedName)
	}
}

func (s *stream) isName(i int) bool { return s.Kind(i) == lex.Name }

// opaque tells whether the token at i is a macro that may be more than a name.
func (r *reader) opaque(s *stream, i int) bool {
	return s.isName(i) && r.macros[s.Tokens[i].Text].opaque
}

// typed tells whether the name at i comes right behind what may be a type, and so is declared.
func (r *reader) typed(s *stream, i int) bool {
	return s.isName(i-1) && !expression()[s.Tokens[i-1].Text] && !r.opaque(s, i-1)
}

// chain is the qualified name that begins at i, and where it ends.
func (r *reader) chain(s *stream, i int) (name string, end int) {
	if s.Is(i, "::") {
		i++
	}
	if !s.isName(i) || keywords()[s.Tokens[i].Text] {
		return "", i
	}
	name = s.Tokens[i].Text
	if i++; !s.Is(i, "::") || r.opaque(s, i-1) {
		return name, i
	}
	long := []byte(name)
	for s.Is(i, "::") {
		r.Step()
		next := i + 1
		if s.Is(next, "template") {
			next++
		}
		if !s.isName(next) || keywords()[s.Tokens[next].Text] || r.opaque(s, next) {
			break
		}
		long = append(append(long, "::"...), s.Tokens[next].Text...)
		i = next + 1
	}
	return string(long), i
}

// meanings are the names that the name at a place may stand for, itself last. Names stand for names;
// where those are more than are looked at, it is computed.
func (r *reader) meanings(at language.Span, name string) []string {
	list, kept := []string{name}, []string(nil)
	for i := 0; i < len(list); i++ {
		r.Step()
		r.Take(len(list[i]))
		root, _, _ := strings.Cut(list[i], "::")
		rest, bound := list[i][len(root):], r.names[root]
		if bound == nil || slices.Contains(bound, root) {
			kept = append(kept, list[i])
		}
		for _, to := range bound {
			if to += rest; slices.Contains(list, to) {
				continue
			}
			if len(list) == maxMeanings || len(to) > maxName {
				r.Compute(at, language.ComputedName)
				break
			}
			list = append(list, to)
		}
	}
	slices.Reverse(kept)
	return kept
}

const (
	maxMeanings = 16   // how many names a name may stand for
	maxName     = 1000 // how long they may be. Compilers' are shorter
)

// plain is a qualified name without what C's library does not need. Algorithms of the standard library
// take more than one argument where functions of the same name in C take one.
func (r *reader) plain(name string, many bool) string {
	if r.open["std"] && strings.HasPrefix(name+"::", "filesystem::") {
		name = "std::" + name
	}
	if bare, ok := strings.CutPrefix(name, "std::"); ok && inC()[bare] && !(bare == "remove" && many) {
		return bare
	}
	return name
}
