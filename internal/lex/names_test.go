package lex

import (
	"fmt"
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
