package python

import (
	"slices"
	"strings"

	"github.com/llmsandbox/llmsandbox/internal/language"
	"github.com/llmsandbox/llmsandbox/internal/lex"
)

// module reads the name of a module, dots before it included, and returns where to go on.
func (r *reader) module(i int) (string, language.Span, int) {
	at := r.At(i).Span
	dots := i
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

// importStatement reads "import a.b, c as d".
func (r *reader) importStatement(start int) int {
	for i := start + 1; ; i++ {
		r.Step()
		module, at, behind := r.module(i)
		if module == "" {
			return i
		}
		r.Import(at, module)
		top, _, _ := strings.Cut(module, ".")
		name, of := top, top
		if i = behind; r.Is(i, "as") && r.isName(i+1) {
			name, of = r.Tokens[i+1].Text, module
			i += 2
		}
		r.bindImport(name, of)
		if !r.Is(i, ",") {
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
		if r.Is(i, "*") {
			r.star(module)
			return i + 1
		}
		if t.Kind != lex.Name {
			return i
		}
		name := t.Text
		if i++; r.Is(i, "as") && r.isName(i+1) {
			name = r.Tokens[i+1].Text
			i += 2
		}
		if strings.HasPrefix(module, ".") {
			r.local[name] = true
		} else {
			r.bindImport(name, r.from(module, t))
		}
		if !r.Is(i, ",") {
			return i
		}
	}
}

// from tells a member that is imported from a module, which may be a module itself, and
// returns its name.
func (r *reader) from(module string, t *lex.Token) string {
	of := r.join(module, t.Text)
	if shared := sharedModule(t.Text); shared != "" && shared != module {
		of = shared
		r.Import(t.Span, of)
	} else if of == "os.path" || !withoutModules()[module] && t.Text == strings.ToLower(t.Text) {
		r.Import(t.Span, of)
	}
	r.Use(t.Span, of, false)
	return of
}

// bindImport binds a name to what the statement imports.
func (r *reader) bindImport(name, of string) {
	r.Bind(r.names, name, of)
	r.replace(name, r.statement)
}

// replace notes that a name is no builtin behind token i, if the statement begins a line of
// the program itself: then it surely is executed.
func (r *reader) replace(name string, i int) {
	at, first := r.Tokens[r.statement].Start, r.statement == 0 || r.Tokens[r.statement-1].Kind == lex.Newline
	if _, ok := r.replaced[name]; !ok && first && r.Depth == 0 && (at == 0 || r.source[at-1] == '\n') {
		r.replaced[name] = r.Tokens[i].Start
	}
}

// star binds what "from module import *" brings as far as that is known. Any other name may
// come from the module too.
func (r *reader) star(module string) {
	if module == "" || strings.HasPrefix(module, ".") {
		return
	}
	r.rebinds = true
	r.Bind(r.names, "*", module)
	for name := range strings.FieldsSeq(exports(module)) {
		r.Step()
		r.Bind(r.names, name, r.join(module, name))
	}
}

// meanings are what the name at a place may stand for; none where that has no name.
func (r *reader) meanings(name string, at int) []string {
	bound := r.names[name]
	replaced, ok := r.replaced[name]
	switch {
	case builtins()[name] && !slices.Contains(bound, name) && (!ok || at <= replaced || r.rebinds || r.Depth > 0):
		return append(slices.Clip(bound), name)
	case len(bound) > 0:
		return bound
	case r.local[name] || everywhere()[name] || !r.telling:
		return nil
	}
	var from []string
	for _, module := range r.names["*"] {
		from = append(from, r.join(module, name))
	}
	if from == nil {
		return []string{name}
	}
	return from
}
