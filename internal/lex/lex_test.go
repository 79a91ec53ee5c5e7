package lex

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/llmsandbox/llmsandbox/internal/language"
)

// toks makes a token of each character.
func toks(code string) (list []Token) {
	for i, r := range code {
		list = append(list, Token{Span: language.Span{Start: i, End: i + 1}, Kind: Punct, Text: string(r)})
	}
	return list
}

func TestPair(t *testing.T) {
	for code, want := range map[string][2]string{
		"(a)[b]":   {"[2 -1 0 5 -1 3]", "[-1 0 -1 -1 3 -1]"},
		"{(a}b":    {"[3 -1 -1 0 -1]", "[-1 0 1 -1 -1]"},
		"a)b(":     {"[-1 -1 -1 -1]", "[-1 -1 -1 -1]"},
		"(a]b)":    {"[4 -1 -1 -1 0]", "[-1 0 0 0 -1]"},
		"f(a,(b))": {"[-1 7 -1 -1 6 -1 4 1]", "[-1 -1 1 1 1 4 1 -1]"},
	} {
		b := Pair(toks(code))
		if got := [2]string{fmt.Sprint(b.Partner), fmt.Sprint(b.Outer)}; got != want {
			t.Errorf("%s: got %v, want %v", code, got, want)
		}
	}
}

func TestArgs(t *testing.T) {
	for code, want := range map[string]string{
		"(a,(b,c),d)": "[[1 2] [3 8] [9 10]]", "()": "[]", "(,)": "[[1 1] [2 2]]", "(a": "[]",
	} {
		stream := NewStream(toks(code))
		if got := fmt.Sprint(stream.Args(0)); got != want {
			t.Errorf("%s: got %s, want %s", code, got, want)
		}
	}
}

func TestConstant(t *testing.T) {
	str, plus := Token{Kind: String, Text: "a", Constant: true}, Token{Kind: Punct, Text: "+"}
	for _, c := range []struct {
		tokens []Token
		text   string
		behind int
		ok     bool
	}{
		{nil, "", 0, false},
		{[]Token{str}, "a", 1, true},
		{[]Token{str, str, plus, str}, "aaa", 4, true},
		{[]Token{str, plus}, "a", 1, true},
		{[]Token{str, plus, {Kind: String, Text: "b"}}, "a", 1, true},
		{[]Token{{Kind: Name, Text: "a", Constant: true}}, "", 0, false},
	} {
		err := language.Metered(t.Context(), 0, func(m *language.Meter) {
			stream := NewStream(c.tokens)
			if text, behind, ok := stream.Constant(m, 0); text != c.text || behind != c.behind || ok != c.ok {
				t.Errorf("%v: got %q, %d, %t, want %q, %d, %t", c.tokens, text, behind, ok, c.text, c.behind, c.ok)
			}
		})
		if err != nil {
			t.Error(err)
		}
	}
}

func TestScopes(t *testing.T) {
	stream := NewStream(toks("a{b(c)}d" + strings.Repeat("(", 2*maxScopes)))
	scopes := Scopes{{-1, "x"}: true, {1, "y"}: true}
	for _, c := range []struct {
		at        int
		name      string
		elsewhere int
		want      bool
	}{
		{4, "x", -2, true}, {4, "y", -2, true}, {0, "y", -2, false}, {7, "y", -2, false}, {4, "z", -2, false}, {4, "z", 3, true}, {2, "z", 3, false},
		{len(stream.Tokens) - 1, "x", -2, false},
	} {
		if got := scopes.In(&stream, c.at, c.name, func(bracket int) bool { return bracket == c.elsewhere }); got != c.want {
			t.Errorf("%s at %d: got %t, want %t", c.name, c.at, got, c.want)
		}
	}
}

// A token that is not there is nothing, and no name or operator.
func TestStreamEnds(t *testing.T) {
	stream := NewStream(toks("(a"))
	for _, i := range []int{-1, 2, 100} {
		if stream.Is(i, "", "(", "a") || stream.Kind(i) != 0 || *stream.At(i) != (Token{}) {
			t.Errorf("token %d: got %+v, want nothing", i, *stream.At(i))
		}
	}
	if !stream.Is(0, "a", "(") || stream.Is(1, "(") || stream.Kind(1) != Punct {
		t.Errorf("got %+v, want stream.Is(0, \"a\", \"(\") = true, stream.Is(1, \"(\") = false, stream.Kind(1) = Punct", stream.Tokens)
	}
}

func TestEdited(t *testing.T) {
	// "abcdef" without "cd", and with "e" written as two bytes.
	changed := map[int]struct {
		text string
		n    int
	}{2: {"", 2}, 4: {"é", 1}}
	var e *Edited
	err := language.Metered(t.Context(), 6, func(m *language.Meter) {
		if same := Edit(m, "abcdef", "xf", func(int) (string, int) { return "", 0 }); same != nil {
			t.Errorf("without a change: %+v, want nil", same)
		}
		e = Edit(m, "abcdef", "ce", func(i int) (string, int) { return changed[i].text, changed[i].n })
	})
	if err != nil || e.Code != "abéf" {
		t.Fatalf("got %+v, %v, want abéf", e, err)
	}
	for s, want := range map[language.Span]language.Span{
		{Start: 0, End: 2}: {Start: 0, End: 2}, {Start: 2, End: 4}: {Start: 4, End: 5}, {Start: 1, End: 5}: {Start: 1, End: 6},
		{Start: 5, End: 5}: {Start: 6, End: 6}, {Start: 2, End: 2}: {Start: 4, End: 4},
	} {
		f := language.Facts{
			Comments: []language.Span{s}, Strings: []language.Literal{{Span: s}}, Imports: []language.Import{{Span: s}},
			Uses: []language.Use{{Span: s}}, Computed: []language.Computed{{Span: s}},
		}
		e.Restore(&f)
		for _, got := range []language.Span{f.Comments[0], f.Strings[0].Span, f.Imports[0].Span, f.Uses[0].Span, f.Computed[0].Span} {
			if got != want {
				t.Errorf("%v: got %v, want %v", s, got, want)
			}
		}
	}
	for pos, want := range map[int]int{0: 0, 2: 2, 4: 2, 5: 4, 6: 5} {
		if got := e.Place(pos); got != want {
			t.Errorf("place of %d: %d, want %d", pos, got, want)
		}
	}
	if got := new(Edited).Origin(language.Span{}); got != (language.Span{}) {
		t.Errorf("of nothing: %v, want %v", got, language.Span{})
	}
}

func TestOrdered(t *testing.T) {
	var f Facts
	for _, u := range []language.Use{
		{Span: language.Span{Start: 5, End: 9}, Name: "d"}, {Span: language.Span{Start: 0, End: 2}, Name: "b"}, {Span: language.Span{Start: 0, End: 4}, Name: "a"},
		{Span: language.Span{Start: 0, End: 4}, Name: "c"}, {Span: language.Span{Start: 3, End: 5}, Name: "e"},
	} {
		f.Use(u.Span, u.Name, u.Call)
	}
	var got []string
	for _, u := range f.Ordered().Uses {
		got = append(got, u.Name)
	}
	if !slices.Equal(got, []string{"a", "c", "d"}) {
		t.Errorf("got %v, want [\"a\" \"c\" \"d\"]", got)
	}
}

func TestNested(t *testing.T) {
	var f Facts
	var down func()
	span := language.Span{Start: 3, End: 4}
	down = func() {
		f.Use(language.Span{Start: 100, End: 200}, "x", false)
		f.Comment(0, 1)
		f.Nested(language.Span{Start: 100, End: 200}, down)
	}
	f.Nested(span, down)
	if len(f.Uses) != MaxDepth || f.Uses[MaxDepth-1].Span != span || len(f.Comments) != 0 || len(f.Computed) != 1 || f.Computed[0].Span != span || f.Depth != 0 {
		t.Errorf("got %+v, want len(f.Uses) = MaxDepth, Span = %v, no Comments, len(f.Computed) = 1, Span = %v, Depth = 0", f, span, span)
	}
}

func TestBudget(t *testing.T) {
	b := BudgetOf(0)
	if !b.Take(4096) || b.Take(1) || !b.Take(0) {
		t.Error("a budget of 4096 is not taken by 4096, or gives more; want exactly 4096")
	}
}

func TestFactsAreBounded(t *testing.T) {
	var f Facts
	for range maxFacts + 1 {
		f.Use(language.Span{}, "x", false)
	}
	if len(f.Uses) != maxFacts || f.Problem == "" {
		t.Errorf("%d uses, problem %q, want len(f.Uses) = %d, Problem not empty", len(f.Uses), f.Problem, maxFacts)
	}
}

func TestIdentifier(t *testing.T) {
	for code, want := range map[string]string{"a1_b c": "a1_b", "1a": "", "é1": "é1", "a.b": "a", "": "", "٣a": "", "a\xff": "a", "aé-": "aé"} {
		c := Cursor{Code: code}
		if got := c.Identifier(""); got != want || c.Pos != len(want) {
			t.Errorf("%q: got %q, at %d, want got = %q, Pos = %d", code, got, c.Pos, want, len(want))
		}
	}
	if c := (Cursor{Code: "a.b$"}); c.Identifier(".") != "a.b" {
		t.Errorf("Identifier is %q, want \"a.b\"", c.Identifier("."))
	}
}
