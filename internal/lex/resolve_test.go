package lex

import (
	"fmt"
	"strings"
	"testing"

	"github.com/llmsandbox/llmsandbox/internal/language"
)

func TestNames(t *testing.T) {
	n := Names{}
	for i := range 2 * maxMeanings {
		n.Bind("x", "os")
		if kept := n.Bind("many", fmt.Sprint(i)); kept != (i < maxMeanings) {
			t.Errorf("meaning %d is kept: got %v, want %v", i, kept, !kept)
		}
	}
	n.Bind("x", "sys")
	for name, want := range map[string]string{"x": "[os sys]", "y": "[y]", "many": "[0 1 2 3 4 5 6 7]"} {
		if got := fmt.Sprint(n.Of(name)); got != want {
			t.Errorf("%s: got %s, want %s", name, got, want)
		}
	}
}

func TestReadChain(t *testing.T) {
	name := func(text string) Token { return Token{Kind: Name, Text: text} }
	dot, colons, call := Token{Kind: Punct, Text: "."}, Token{Kind: Punct, Text: "::"}, Token{Kind: Punct, Text: "("}
	for _, c := range []struct {
		tokens []Token
		want   string
	}{
		{[]Token{name("a")}, "[a] 1"},
		{[]Token{name("a"), dot, name("b"), colons, name("c"), call}, "[a b c] 5"},
		{[]Token{name("a"), dot}, "[a] 1"},
		{[]Token{name("a"), dot, dot, name("b")}, "[a] 1"},
		{[]Token{name("a"), name("b")}, "[a] 1"},
	} {
		err := language.Metered(t.Context(), 100, func(m *language.Meter) {
			got := ReadChain(m, c.tokens, 0, ".", "::")
			if got := fmt.Sprint(got.Names, got.Behind); got != c.want {
				t.Errorf("got %s, want %s", got, c.want)
			}
		})
		if err != nil {
			t.Error(err)
		}
	}
}

// resolved is what the resolver reports of code in a language that has names, dots, calls,
// assignments, and one function that imports.
func resolved(m *language.Meter, code string) (said []string, problem string) {
	names := Names{}
	facts := &Facts{Meter: m}
	l := Lexer{Cursor: Cursor{Code: code}, Facts: facts, Table: &Table{Remark: "#", Ends: "\n", Quotes: "'", Balanced: true, Operators: OperatorsOf("?.")}}
	l.Run()
	r := Resolver{Facts: facts, Stream: NewStream(l.Tokens)}
	r.Dots = func(i int) bool { return r.Is(i, ".", "?.") }
	r.Opens = func(i int) bool {
		return r.Is(i, "(", "[") && (r.Kind(i-1) == Name || r.Is(i-1, ")", "]", "?."))
	}
	r.Passes = func(before, _ int) bool { return r.Is(before, "|") }
	r.Member = func(v *Value, i int) {
		for n, of := range v.Names {
			v.Names[n] = r.Join(of, ".", r.Tokens[i].Text)
		}
		v.End = r.Tokens[i].End
	}
	r.Item = func(c *Call) Value {
		r.Tell(&c.Value, false)
		return Value{First: c.First, Told: true}
	}
	r.Result = func(c *Call, name string) (got []string, told bool) {
		if name != "bring" || len(c.Args) == 0 {
			return nil, false
		}
		text, ok := r.Text(c.Args[0])
		if !ok {
			r.Compute(c.Span, language.ComputedImport)
			return nil, false
		}
		r.Import(c.Span, text)
		return []string{text}, true
	}
	r.Report = func(s language.Span, name string, call bool) {
		if r.Facts.Use(s, name, call); !r.Binding {
			said = append(said, name)
		}
	}
	r.Escapes = func(v *Value, _ int) language.ComputedKind {
		if v.Names[0] == "bring" {
			return language.ComputedImport
		}
		return ""
	}
	r.Assign = func(v *Value, _ int) {
		if r.Is(v.First-1, "=") {
			for _, name := range v.Names {
				r.Bind(names, r.Tokens[v.First-2].Text, name)
			}
		}
	}
	for _, r.Binding = range []bool{true, false} {
		for i := 0; i < len(r.Tokens); {
			switch {
			case r.Is(i, ")", "]"):
				i = r.Close(i)
			case r.Kind(i) == Name && !r.Is(i+1, "="):
				i = r.Chain(Value{First: i, Span: r.Tokens[i].Span, Names: r.Add(nil, names.Of(r.Tokens[i].Text)...)}, i+1)
			default:
				i++
			}
		}
	}
	for _, i := range r.Imports {
		said = append(said, "import "+i.Module)
	}
	for _, c := range r.Computed {
		said = append(said, "computed "+string(c.Kind))
	}
	return said, r.Problem
}

func TestResolver(t *testing.T) {
	read := func(code string) (said []string, problem string) {
		if err := language.Metered(t.Context(), len(code), func(m *language.Meter) { said, problem = resolved(m, code) }); err != nil {
			t.Fatalf("%.60s: %v", code, err)
		}
		return said, problem
	}
	for code, want := range map[string]string{
		"a.b.c":                         "[a.b.c]",
		"a.b(c).d":                      "[c a.b]",
		"a?.(b)":                        "[b a]",
		"x = a.b; x.c()":                "[a.b a.b.c]",
		"x.c(); x = a.b":                "[a.b.c a.b]",
		"((a)).b":                       "[a.b]",
		"(1 | a).b":                     "[a.b]",
		"(1 + a).b":                     "[a]",
		"a[b].c":                        "[b a]",
		"bring('o' + 's').x()":          "[import os]",
		"x = bring('os').x; x()":        "[os.x import os]",
		"bring(y)":                      "[y bring computed import]",
		"f(bring)":                      "[bring f computed import]",
		"a(b":                           "[a b]",
		"x = a; x = b; x.c":             "[a b a.c b.c]",
		"a" + strings.Repeat(".b", 200): "[a" + strings.Repeat(".b", 127) + "]",
	} {
		if said, _ := read(code); fmt.Sprint(said) != want {
			t.Errorf("%.60s: got %v, want %s", code, said, want)
		}
	}
	many := "x = y.z"
	for i := range 2 * maxMeanings {
		many += fmt.Sprintf("; x = a%d", i)
	}
	for code, want := range map[string]string{
		"a.b":                           "",
		"a" + strings.Repeat(".b", 200): "a name in it is longer than what is looked at",
		many:                            "a name in it stands for more than is looked at",
	} {
		if _, problem := read(code); problem != want {
			t.Errorf("%.60s: got %q, want %q", code, problem, want)
		}
	}
}
