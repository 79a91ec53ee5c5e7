package python

import (
	"bytes"
	"math"
	"slices"
	"strings"

	"github.com/llmsandbox/llmsandbox/internal/language"
	"github.com/llmsandbox/llmsandbox/internal/lex"
)

// scan reads a program by its tokens and evaluates nothing. It reads them twice: first to bind
// names, then to report what they stand for.
//
// The language leaves open what some names are. A name that nothing in the program binds is
// reported as it is written, since an earlier cell may have bound it. A name that an import or an
// assignment such as "x = os.system" binds anywhere stands for that everywhere. A builtin that
// the program binds too still counts as the builtin, unless a line of the module itself defines
// or imports the name before. Members that lead from any object to its class, its globals or
// its frame ("__subclasses__", "__globals__") are reported by their bare names. A module that
// another one has as a member ("logging.os") counts as imported. A function that runs code,
// imports, or gets members by their names (exec, __import__, getattr) is computed where it is
// a value and not called.
func scan(m *language.Meter, code []byte) language.Facts {
	k := &known{facts: &lex.Facts{Meter: m}, names: lex.Names{}, local: map[string]bool{}, replaced: map[string]int{}, budget: lex.BudgetOf(8 * len(code))}
	if bytes.HasPrefix(code, []byte("\xff\xfe")) || bytes.HasPrefix(code, []byte("\xfe\xff")) {
		k.facts.MarkUnreadable("it is not written in UTF-8")
		k.facts.Compute(language.Span{End: len(code)}, language.ComputedCode)
	} else {
		k.read(string(code))
	}
	return k.facts.Ordered()
}

// Known is what is known of a program, the code in its strings included.
type known struct {
	facts *lex.Facts
	names lex.Names
	// local are names that are bound to values without a name, as parameters are.
	local map[string]bool
	// replaced says from where on a name is that of a function or import of the program. It
	// does not count if the program rebinds names by other means than statements.
	replaced map[string]int
	rebinds  bool
	budget   lex.Budget // bytes of code in strings that may still be read
}

// A reader reads one text: the program, or code in a string.
type reader struct {
	*known
	lex.Resolver
	source    string
	statement int // where the statement begins
}

// Roles of tokens.
const (
	target = 1 << iota // a name that gets a value
	begins             // a statement begins there
	alone              // an assignment sign that assigns to the name before it, and nothing else
	typed              // one that assigns to the name that the statement begins with
)

// read reads a text twice.
func (k *known) read(source string) {
	r := &reader{known: k, source: source}
	r.Stream = lex.NewStream(tokenize(source, k.facts))
	r.Dots, r.Opens = func(i int) bool { return r.Is(i, ".") }, func(i int) bool { return r.Is(i, "(", "[") && r.isOperand(i-1) }
	r.Passes = func(before, _ int) bool { return r.Is(before, "or", "and", "else", ":=") }
	r.Member, r.Item, r.Result, r.Escapes, r.Report, r.Assign = r.member, r.index, r.result, r.escapes, r.report, r.assign
	r.Facts = k.facts
	for _, r.Binding = range []bool{true, false} {
		if r.Binding {
			r.assignments()
		}
		for i := 0; i < len(r.Tokens); {
			r.Step()
			i = r.token(i)
		}
	}
}

// isName tells whether token i is a name and no keyword.
func (r *reader) isName(i int) bool {
	t := r.At(i)
	return t.Kind == lex.Name && !keywords()[t.Text]
}

// isOperand tells whether token i ends something that may be called.
func (r *reader) isOperand(i int) bool {
	kind := r.At(i).Kind
	return r.isName(i) || kind == lex.Number || kind == lex.String || r.Is(i, ")", "]", "}", "None", "True", "False")
}

// ends tells whether token i ends a statement.
func (r *reader) ends(i int) bool {
	kind := r.Kind(i)
	return kind == 0 || kind == lex.Newline || kind == magic || r.Is(i, ";")
}

// until is the next token, brackets passed over, that ends what token i is in, or one of texts.
func (r *reader) until(i int, texts ...string) int {
	for !r.ends(i) && !r.Is(i, ")", "]", "}", ":") && !r.Is(i, texts...) {
		r.Step()
		i = r.Skip(i)
	}
	return i
}

// assignments finds where statements begin, and the names that get values.
func (r *reader) assignments() {
	begin, from, lambdas, annotated := 0, 0, 0, false
	for i := range r.Tokens {
		r.Step()
		t, top := &r.Tokens[i], r.Outer[i] < 0
		if i == begin {
			t.Role |= begins
			from, lambdas, annotated = i, 0, false
		}
		switch {
		case r.ends(i):
			begin = i + 1
		case t.Is("=") && top && lambdas == 0:
			switch {
			case !annotated:
				if r.targets(from, i); from+1 == i && r.isName(from) {
					t.Role |= alone
				}
			case r.Is(begin+1, ":"):
				t.Role |= typed
			}
			from = i + 1
		case t.Is(":") && top && lambdas > 0:
			lambdas--
		case t.Is(":") && top && r.isName(begin) && r.Is(begin+1, ":", ".", "[") && !r.Is(begin, "match", "case"):
			if !annotated {
				r.targets(from, i)
			}
			annotated = true
		case t.Is(":") && top:
			if r.Is(begin, "def") {
				r.replace(r.At(begin+1).Text, begin, i)
			}
			begin = i + 1
		case t.Is("def"), t.Is("class"):
			r.define(i)
		case t.Is("lambda"):
			if top {
				lambdas++
			}
			r.parameters(i+1, r.until(i+1, "lambda"))
		case t.Is("for"):
			r.targets(i+1, r.until(i+1, "in", "for"))
		case t.Is("as"):
			r.targets(i+1, i+2)
		case t.Is(":="):
			r.targets(i-1, i)
		}
	}
}

// targets binds the names from token i up to token end which get a value there: those that are no
// members and have none, and are in no arguments and no index.
func (r *reader) targets(i, end int) {
	for ; i < end; i++ {
		r.Step()
		switch {
		case r.Is(i, "{") || r.Is(i, "(", "[") && (r.isOperand(i-1) || r.Is(r.Skip(i), ".", "(", "[")):
			i = max(i, r.Partner[i])
		case r.isName(i) && !r.Is(i-1, ".") && !r.Is(i+1, ".", "[", "("):
			r.bind(i)
		}
	}
}

// parameters binds those from token i up to token end.
func (r *reader) parameters(i, end int) {
	for first := true; i < end; i = r.Skip(i) {
		r.Step()
		if first && r.isName(i) {
			r.bind(i)
		}
		first = r.Is(i, ",") || first && r.Is(i, "*")
	}
}

// define binds the name of a function or a class, and parameters.
func (r *reader) define(i int) {
	if !r.isName(i + 1) {
		return
	}
	r.bind(i + 1)
	open := i + 2
	if r.Is(open, "[") {
		open = r.Skip(open)
	}
	if r.Is(i, "def") && r.Is(open, "(") {
		r.parameters(open+1, r.Partner[open])
	}
}

// bind notes that the name at token i gets a value.
func (r *reader) bind(i int) {
	r.Tokens[i].Role |= target
	r.local[r.Tokens[i].Text] = true
}

// token reads what begins at token i and returns where to go on.
func (r *reader) token(i int) int {
	t := &r.Tokens[i]
	if t.Role&begins != 0 {
		r.statement = i
	}
	switch t.Kind {
	case magic:
		r.magic(t.Text, t.Span)
	case lex.Name:
		return r.name(i)
	case lex.String, lex.Number:
		if !r.Binding && t.Kind == lex.String {
			r.String(language.Literal{Span: t.Span, Value: t.Text, Doc: r.ends(i-1) && r.ends(i+1)})
		}
		return r.Chain(lex.Value{First: i}, i+1)
	case lex.Punct:
		if r.Is(i, ")", "]", "}") {
			return r.Close(i)
		}
	}
	return i + 1
}

// name reads what begins with a name or a keyword.
func (r *reader) name(i int) int {
	t := &r.Tokens[i]
	v := lex.Value{First: i, Span: t.Span}
	switch {
	case t.Text == "import":
		return r.importStatement(i)
	case t.Text == "from":
		return r.fromStatement(i)
	case t.Text == "global", t.Text == "nonlocal":
		return r.until(i + 1)
	case r.Is(i, "None", "True", "False"):
		return r.Chain(v, i+1)
	case keywords()[t.Text], t.Role&target != 0,
		r.Outer[i] >= 0 && r.Is(r.Outer[i], "(") && r.Is(i+1, "=") && r.Is(i-1, "(", ","), // a named argument
		i == r.statement && r.Is(i, "match", "case") && r.isSubject(i+1):
		return i + 1
	case r.Is(r.statement, "del"):
		r.replaced[t.Text] = math.MaxInt // it is the builtin again
	}
	if introspective()[t.Text] && strings.HasPrefix(t.Text, "__") && t.Text != "__import__" && !everywhere()[t.Text] {
		v.Names, v.Told = r.inner(nil, t.Text, t.Span, r.Is(i+1, "(")), true
	} else {
		v.Names = r.meanings(t.Text, t.Start)
	}
	return r.Chain(v, i+1)
}

// isSubject tells whether what is matched begins at token i, and no member, call or index.
func (r *reader) isSubject(i int) bool {
	return r.isOperand(i) || r.Is(i, "{") || r.Is(i, "(", "[") && r.Is(r.Skip(i), ":")
}

// module reads the name of a module, dots before it included, and returns where to go on.
func (r *reader) module(i int) (string, language.Span, int) {
	at, dots := r.At(i).Span, i
	for ; r.Is(i, "."); i++ {
		r.Step()
		at.End = r.Tokens[i].End
	}
	name := strings.Repeat(".", i-dots)
	if r.isName(i) {
		c := lex.ReadChain(r.Meter, r.Tokens, i, ".")
		name += strings.Join(c.Names, ".")
		at.End, i = c.End, c.Behind
	}
	return name, at, i
}

// as is the name that an import at token i gives to what has another name.
func (r *reader) as(i int, name string) (string, int) {
	if r.Is(i, "as") && r.isName(i+1) {
		return r.Tokens[i+1].Text, i + 2
	}
	return name, i
}

// importStatement reads "import a.b, c as d".
func (r *reader) importStatement(start int) int {
	for i := start + 1; ; i++ {
		r.Step()
		module, at, behind := r.module(i)
		if module == "" {
			return i
		}
		r.Import(at, module)
		name, end := r.as(behind, "")
		if name == "" {
			module, _, _ = strings.Cut(module, ".")
			name = module
		}
		r.imported(name, module)
		if i = end; !r.Is(i, ",") {
			return i
		}
	}
}

// fromStatement reads "from a import b, c as d".
func (r *reader) fromStatement(start int) int {
	module, at, i := r.module(start + 1)
	if !r.Is(i, "import") {
		return start + 1 // as in "yield from f()"
	}
	r.Import(at, module)
	if i++; r.Is(i, "(") {
		i++
	}
	for ; ; i++ {
		r.Step()
		t := r.At(i)
		if r.Is(i, "*") && module != "" && module[0] != '.' {
			r.rebinds = true
			r.Bind(r.names, "*", module)
			return i + 1
		}
		if t.Kind != lex.Name {
			return i
		}
		var name string
		if name, i = r.as(i+1, t.Text); strings.HasPrefix(module, ".") {
			r.local[name] = true
		} else {
			r.imported(name, r.from(module, t))
		}
		if !r.Is(i, ",") {
			return i
		}
	}
}

// from reports a member that is imported from a module, which may be a module itself, and
// returns its name.
func (r *reader) from(module string, t *lex.Token) string {
	of := r.Join(module, ".", t.Text)
	if shared := sharedModule(t.Text); shared != "" && shared != module {
		of = shared
		r.Import(t.Span, of)
	} else if of == "os.path" || !withoutModules()[module] && t.Text == strings.ToLower(t.Text) {
		r.Import(t.Span, of)
	}
	r.Use(t.Span, of, false)
	return of
}

// imported binds a name to what a statement imports.
func (r *reader) imported(name, of string) {
	r.Bind(r.names, name, of)
	r.replace(name, r.statement, r.statement)
}

// replace notes that a name is no builtin behind token i, if the statement begins a line of
// the program itself: then it surely is executed.
func (r *reader) replace(name string, statement, i int) {
	at, first := r.Tokens[statement].Start, statement == 0 || r.Tokens[statement-1].Kind == lex.Newline
	if _, ok := r.replaced[name]; !ok && first && r.Depth == 0 && (at == 0 || r.source[at-1] == '\n') {
		r.replaced[name] = r.Tokens[i].Start
	}
}

// meanings are what the name at a place may stand for; none where that has no name.
func (r *reader) meanings(name string, at int) []string {
	bound := r.names[name]
	replaced, ok := r.replaced[name]
	var from []string
	for _, module := range r.names["*"] {
		if !r.Binding && len(bound) == 0 && !everywhere()[name] && (shared()[module] || !r.local[name]) {
			from = append(from, r.Join(module, ".", name))
		}
	}
	switch {
	case builtins()[name] && !slices.Contains(bound, name) && (!ok || at <= replaced || r.rebinds || r.Depth > 0):
		return append(append(slices.Clip(bound), from...), name)
	case len(bound) > 0:
		return bound
	case from != nil:
		return from
	case r.local[name] || everywhere()[name] || r.Binding:
		return nil
	}
	return []string{name}
}
