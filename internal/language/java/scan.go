package java

import (
	"slices"
	"strings"

	"github.com/llmsandbox/llmsandbox/internal/language"
	"github.com/llmsandbox/llmsandbox/internal/lex"
)

// scan reads a Java program, or a cell of a kernel, by its tokens. Names are qualified: those of
// classes by imports, those of members by the classes that variables are declared with, and those of
// what a few methods return.
func scan(m *language.Meter, code []byte) language.Facts {
	r := reader{
		Facts: lex.Facts{Meter: m}, imported: map[string]string{}, packages: map[string]bool{}, statics: lex.Names{}, own: lex.Scopes{},
		variables: lex.Names{}, results: map[int]string{}, mirrored: map[int]string{}, brought: map[string]bool{},
	}
	text := string(code)
	edited := unescape(m, text)
	if edited != nil {
		text = edited.Code
	}
	r.Stream = lex.NewStream(r.aside(split(&r.Facts, text)))
	r.declarations()
	for i := range r.Tokens {
		r.use(i)
	}
	r.unknown()
	if edited != nil {
		edited.Restore(&r.Facts.Facts)
	}
	return r.Ordered()
}

// A reader collects the facts of one file. Classes are by their whole names.
type reader struct {
	lex.Facts
	lex.Stream
	imported  map[string]string // classes by their names in the file
	statics   lex.Names         // members by theirs
	packages  map[string]bool   // packages all of whose classes are imported
	others    []string          // those of them that are not the JDK's
	classes   []string          // classes all of whose members are
	own       lex.Scopes        // the file's own classes
	variables lex.Names         // the classes that variables are declared with
	results   map[int]string    // the class of what a call returns, by its closing bracket
	mirrored  map[int]string    // the class that such a result of class Class stands for
	mirrors   []string          // all of those
	members   []member          // members of what is not known
	brought   map[string]bool   // classes whose use was told as an import
	pending   string            // a variable whose class is that of what it is assigned
	done      int               // where the name ends that was looked at last
	scripts   bool              // there are imports of what runs other code
}

// A member is one of a class that is not known.
type member struct {
	language.Span
	name   string
	called bool // it is called there, and not looked up
}

// aside moves what changes no name out of the names that it is in: type arguments and annotations
// behind a dot come last, as if they were statements of their own.
func (r *reader) aside(tokens []lex.Token) []lex.Token {
	var kept, moved []lex.Token
	for i := 0; i < len(tokens); i++ {
		r.Step()
		kept = append(kept, tokens[i])
		if !tokens[i].Is(".") || i+1 == len(tokens) {
			continue
		}
		end := r.annotations(tokens, i+1)
		if end < len(tokens) && tokens[end].Is("<") {
			end = r.closed(tokens, end, ">")
		}
		if end > i+1 {
			moved = append(append(moved, lex.Token{Kind: lex.Punct, Text: ";"}), tokens[i+1:end]...)
			i = end - 1
		}
	}
	return append(kept, moved...)
}

// annotations is behind those that begin at i.
func (r *reader) annotations(tokens []lex.Token, i int) int {
	for i+1 < len(tokens) && tokens[i].Is("@") && tokens[i+1].Kind == lex.Name {
		r.Step()
		i = lex.ReadChain(r.Meter, tokens, i+1, ".").Behind
		if i < len(tokens) && tokens[i].Is("(") {
			i = r.closed(tokens, i, ")")
		}
	}
	return i
}

// closed is behind the brackets that open at i and are not long, or i.
func (r *reader) closed(tokens []lex.Token, i int, end string) int {
	depth := 0
	for j := i; j < min(len(tokens), i+64); j++ {
		r.Step()
		if tokens[j].Is(tokens[i].Text) {
			depth++
		} else if tokens[j].Is(end) {
			if depth--; depth == 0 {
				return j + 1
			}
		}
	}
	return i
}

// chain is the qualified name at i, and where it ends.
func (r *reader) chain(i int) (name string, end int) {
	if r.Kind(i) != lex.Name {
		return "", i
	}
	c := lex.ReadChain(r.Meter, r.Tokens, i, ".")
	return strings.Join(c.Names, "."), c.Behind
}

// declarations finds imports, the file's own classes, and variables.
func (r *reader) declarations() {
	for i, t := range r.Tokens {
		if t.Kind != lex.Name || r.Is(i-1, ".") {
			continue
		}
		switch t.Text {
		case "import":
			r.importAt(i + 1)
		case "class", "interface", "enum", "record":
			if r.Kind(i+1) == lex.Name && (t.Text != "record" || r.Is(i+2, "(") || r.Is(i+2, "<")) {
				r.own[lex.Scope{Bracket: r.Outer[i], Name: r.Tokens[i+1].Text}] = true
			}
		}
	}
	for i, t := range r.Tokens {
		if t.Kind == lex.Name && !r.Is(i-1, ".") {
			r.variable(i)
		}
	}
}

// importAt reads what is behind import.
func (r *reader) importAt(i int) {
	static, module := r.Is(i, "static"), r.Is(i, "module") && r.Kind(i+1) == lex.Name
	if static || module {
		i++
	}
	name, end := r.chain(i)
	if name == "" {
		return
	}
	span := r.SpanOf(i, end)
	all := r.Is(end, ".") && r.Is(end+1, "*")
	last := strings.LastIndexByte(name, '.')
	r.scripts = r.scripts || runsScripts(name+".")
	switch {
	case module:
		for pkg := range listed() {
			r.packages[pkg] = true
		}
	case static && all:
		if r.classes = add(r.classes, name); !slices.Contains(r.classes, name) {
			r.MarkUnreadable("it imports the members of more classes than are looked at")
		}
	case static && last > 0:
		r.Bind(r.statics, name[last+1:], name)
		name, span.End = name[:last], r.Tokens[end-3].End
	case all:
		if !listed()[name] {
			r.others = add(r.others, name)
		}
		r.packages[name] = true
	default:
		r.imported[name[last+1:]] = name
	}
	r.Import(span, name)
}

// runsScripts tells whether a name is of a package that runs other code.
func runsScripts(name string) bool {
	return strings.HasPrefix(name, "javax.script.") || strings.HasPrefix(name, "jdk.jshell.") || strings.HasPrefix(name, "groovy.")
}

// maxKnown bounds the packages, and the classes, that each name that is not known is looked for in.
const maxKnown = 8

// add adds one of them.
func add(list []string, name string) []string {
	if len(list) == maxKnown || slices.Contains(list, name) {
		return list
	}
	return append(list, name)
}

// variable notes the class that a variable at i is declared with.
func (r *reader) variable(i int) {
	switch {
	case r.Is(i+1, "="), r.Is(i+1, ";"), r.Is(i+1, ","), r.Is(i+1, ")"), r.Is(i+1, ":"), r.Is(i+1, "&&"):
	default:
		return
	}
	first := i - 1
	for r.Is(first, "]") || r.Is(first, "[") || r.Is(first, "...") {
		r.Step()
		first--
	}
	for depth := 0; first > max(0, i-64) && (r.Is(first, ">") || depth > 0); first-- {
		r.Step()
		if r.Is(first, ">") {
			depth++
		} else if r.Is(first, "<") {
			depth--
		}
	}
	if r.Kind(first) != lex.Name {
		return
	}
	for r.Is(first-1, ".") && r.Kind(first-2) == lex.Name && i-first < 64 {
		r.Step()
		first -= 2
	}
	written, _ := r.chain(first)
	for _, class := range r.classOf(written, first) {
		r.Bind(r.variables, r.Tokens[i].Text, class)
	}
}
