package python

import (
	"bytes"
	"math"
	"strings"

	"github.com/llmsandbox/llmsandbox/internal/language"
	"github.com/llmsandbox/llmsandbox/internal/lex"
)

// scan reads a program by its tokens and evaluates nothing. It goes over them twice: first to
// learn what names stand for, then to tell facts.
//
// The language leaves open what some names are. A name that nothing in the program binds is
// told as it is written, since an earlier cell may have bound it. A name that an import or an
// assignment such as "x = os.system" binds anywhere stands for that everywhere. A builtin that
// the program binds too still counts as the builtin, unless a line of the module itself defines
// or imports the name before. Members that lead from any object to its class, its globals or
// its frame ("__subclasses__", "__globals__") are told by their bare names. A module that
// another one has as a member ("logging.os") counts as imported. A function that runs code,
// imports, or gets members by their names (exec, __import__, getattr) is computed where it is
// a value and not called.
func scan(m *language.Meter, code []byte) language.Facts {
	k := &known{Facts: &lex.Facts{Meter: m}, names: lex.Names{}, local: map[string]bool{}, replaced: map[string]int{}, budget: lex.BudgetOf(8 * len(code))}
	if bytes.HasPrefix(code, []byte("\xff\xfe")) || bytes.HasPrefix(code, []byte("\xfe\xff")) {
		k.Trouble("it is not written in UTF-8")
		k.Compute(language.Span{End: len(code)}, language.ComputedCode)
	} else {
		k.read(string(code))
	}
	return k.Ordered()
}

// Known is what is known of a program, the code in its strings included.
type known struct {
	*lex.Facts
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
	lex.Stream
	source string
	// telling is false the first time, when what is found counts for nothing.
	telling bool
	targets []bool // tokens that are names which get a value
	calls   []call // those whose brackets are open

	statement int   // where the statement begins
	value     int   // where it goes on after its last assignment sign
	assigned  []int // the plain names that it assigns to
	lambdas   int   // how many of its colons are to come that end the parameters of a lambda
}

// read reads a text twice.
func (k *known) read(source string) {
	r := &reader{known: k, source: source, Stream: lex.NewStream(tokenize(source, k.Facts))}
	r.targets = make([]bool, len(r.Tokens))
	told := k.Facts
	k.Facts = &lex.Facts{Meter: told.Meter, Depth: told.Depth}
	r.all()
	k.Facts = told
	r.telling = true
	r.all()
}

func (r *reader) all() {
	r.calls = nil
	r.begin(0)
	for i := 0; i < len(r.Tokens); {
		r.Step()
		i = r.token(i)
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
	return r.isName(i) || kind == lex.Number || kind == lex.String || r.Is(i, ")", "]", "}")
}

// ends tells whether token i ends a statement.
func (r *reader) ends(i int) bool {
	return i < 0 || i >= len(r.Tokens) || r.Tokens[i].Kind == lex.Newline || r.Is(i, ";")
}

// until is the next token, brackets passed over, that ends what token i is in, or one of texts.
func (r *reader) until(i int, texts ...string) int {
	for !r.ends(i) && !r.Is(i, ")", "]", "}", ":") && !r.Is(i, texts...) {
		r.Step()
		i = r.Skip(i)
	}
	return i
}

// begin begins a statement.
func (r *reader) begin(i int) {
	r.statement, r.value, r.assigned, r.lambdas = i, i, r.assigned[:0], 0
}

// token reads what begins at token i and returns where to go on.
func (r *reader) token(i int) int {
	t := &r.Tokens[i]
	switch t.Kind {
	case magic:
		r.magic(t.Text, t.Span)
		r.begin(i + 1)
	case lex.Newline:
		r.begin(i + 1)
	case lex.Name:
		if keywords()[t.Text] {
			return r.keyword(i)
		}
		return r.name(i)
	case lex.String, lex.Number:
		if r.telling && t.Kind == lex.String {
			r.String(language.Literal{Span: t.Span, Value: t.Text, Doc: r.ends(i-1) && r.ends(i+1)})
		}
		return r.chain(link{first: i}, i+1)
	case lex.Punct:
		return r.punct(i)
	}
	return i + 1
}

func (r *reader) punct(i int) int {
	switch r.Tokens[i].Text {
	case ")", "]", "}":
		l := link{first: i}
		if n := len(r.calls) - 1; n >= 0 && r.Partner[r.calls[n].open] == i {
			c := r.calls[n]
			r.calls = r.calls[:n]
			l = r.closed(&c)
		}
		return r.chain(l, i+1)
	case ";":
		r.begin(i + 1)
	case ":":
		r.colon(i)
	case "=":
		if r.Outer[i] < 0 && r.lambdas == 0 {
			r.assign(i)
		}
	}
	return i + 1
}

// colon reads the colon at token i: it ends the parameters of a lambda, an annotation follows
// it, or a statement.
func (r *reader) colon(i int) {
	switch {
	case r.Outer[i] >= 0:
	case r.lambdas > 0:
		r.lambdas--
	case r.isName(r.statement) && r.Is(r.statement+1, ":", ".", "[") && !r.Is(r.statement, "match", "case"):
		r.assign(i)
		r.value = len(r.Tokens) // an annotation gets no value
	default:
		if r.Is(r.statement, "def") {
			r.replace(r.At(r.statement+1).Text, i)
		}
		r.begin(i + 1)
	}
}

// assign binds the names between the last assignment sign and the one at token i. They were
// read as values the first time, and are passed over the second time.
func (r *reader) assign(i int) {
	if r.value+1 == i && r.isName(r.value) {
		r.assigned = append(r.assigned, r.value)
	}
	r.bindTargets(r.value, i)
	r.value = i + 1
}

// bindTargets binds the names from token i up to token end which get a value there.
func (r *reader) bindTargets(i, end int) {
	for ; i < end; i++ {
		r.Step()
		switch {
		case r.Is(i, "(", "[", "{") && !r.isGroup(i):
			i = max(i, r.Partner[i])
		case r.isTarget(i):
			r.bind(i)
		}
	}
}

// bindParameters binds the names of parameters from token i up to token end.
func (r *reader) bindParameters(i, end int) {
	for first := true; i < end; i = r.Skip(i) {
		r.Step()
		if first && r.isName(i) {
			r.bind(i)
		}
		first = r.Is(i, ",") || first && r.Is(i, "*")
	}
}

// isGroup tells whether the bracket at token i is around targets: what is in it is neither an
// argument nor an index, and has no members.
func (r *reader) isGroup(i int) bool {
	return r.Is(i, "(", "[") && !r.isOperand(i-1) && !r.Is(r.Skip(i), ".", "(", "[")
}

// isTarget tells whether token i is a name that may get a value: no member, and without any.
func (r *reader) isTarget(i int) bool {
	return r.isName(i) && !r.Is(i-1, ".") && !r.Is(i+1, ".", "[", "(")
}

// bind notes that the name at token i gets a value.
func (r *reader) bind(i int) {
	r.targets[i] = true
	r.local[r.Tokens[i].Text] = true
}

func (r *reader) name(i int) int {
	t := &r.Tokens[i]
	switch {
	case r.targets[i]:
		return i + 1
	case r.Is(i+1, ":="):
		r.bind(i)
		return i + 1
	case r.Outer[i] >= 0 && r.Is(r.Outer[i], "(") && r.Is(i+1, "=") && r.Is(i-1, "(", ","): // a named argument
		return i + 1
	case i == r.statement && r.Is(i, "match", "case") && r.isSubject(i+1):
		return i + 1
	case r.Is(r.statement, "del"):
		r.replaced[t.Text] = math.MaxInt // it is the builtin again
	}
	l := link{first: i, at: t.Span}
	if introspective()[t.Text] && strings.HasPrefix(t.Text, "__") && t.Text != "__import__" && !everywhere()[t.Text] {
		l.names, l.told = r.inner(nil, t.Text, t.Span, r.Is(i+1, "(")), true
	} else {
		l.names = r.meanings(t.Text, t.Start)
	}
	return r.chain(l, i+1)
}

// isSubject tells whether what is matched begins at token i, and no member, call or index.
func (r *reader) isSubject(i int) bool {
	return r.isOperand(i) || r.Is(i, "{", "None", "True", "False") || r.Is(i, "(", "[") && r.Is(r.Skip(i), ":")
}

func (r *reader) keyword(i int) int {
	switch r.Tokens[i].Text {
	case "import":
		return r.importStatement(i)
	case "from":
		return r.fromStatement(i)
	case "def", "class":
		return r.definition(i)
	case "lambda":
		if r.Outer[i] < 0 {
			r.lambdas++
		}
		r.bindParameters(i+1, r.until(i+1, "lambda"))
	case "for":
		r.bindTargets(i+1, r.until(i+1, "in", "for"))
	case "as":
		if r.isTarget(i + 1) {
			r.bind(i + 1)
		}
	case "global", "nonlocal":
		return r.until(i + 1)
	case "None", "True", "False":
		return r.chain(link{first: i}, i+1)
	}
	return i + 1
}

// definition reads the name of a function or a class, and parameters.
func (r *reader) definition(i int) int {
	if !r.isName(i + 1) {
		return i + 1
	}
	r.bind(i + 1)
	open := i + 2
	if r.Is(open, "[") {
		open = r.Skip(open)
	}
	if r.Is(i, "def") && r.Is(open, "(") {
		r.bindParameters(open+1, r.Partner[open])
	}
	return i + 2
}
