package cpp

import (
	"slices"

	"github.com/llmsandbox/llmsandbox/internal/language"
	"github.com/llmsandbox/llmsandbox/internal/lex"
)

// substitute is a macro's body with its arguments in place of the parameters. Arguments are
// expanded first, but for those that are pasted or made strings of.
func (e *expander) substitute(m *macro, args [][]lex.Token, place language.Span, depth int) []lex.Token {
	var list []lex.Token
	for i, t := range m.body {
		n := -1
		if t.Kind == lex.Name {
			n = slices.Index(m.params, t.Text)
		}
		if n < 0 {
			t.Span = place
			list = append(list, t)
			continue
		}
		var arg []lex.Token
		if n < len(args) {
			arg = args[n]
		}
		if t.Text == "__VA_ARGS__" || n == len(m.params)-1 {
			for _, more := range args[min(n+1, len(args)):] {
				arg = append(append(arg[:len(arg):len(arg)], lex.Token{Span: place, Kind: lex.Punct, Text: ","}), more...)
			}
		}
		if !e.budget.Take(len(arg)) {
			continue
		}
		pasted := i > 0 && m.body[i-1].Is("##") || i+1 < len(m.body) && m.body[i+1].Is("##")
		if i > 0 && m.body[i-1].Is("#") {
			list = append(list[:len(list)-1], lex.Token{Span: place, Kind: lex.String, Text: text(arg), Constant: true})
			continue
		}
		if !pasted && depth < lex.MaxDepth {
			s := &stream{}
			e.expand(s, arg, &place, depth+1)
			arg = s.tokens
		}
		list = append(list, arg...)
	}
	return m.paste(list)
}

// paste joins the tokens around each "##".
func (m *macro) paste(list []lex.Token) []lex.Token {
	if !m.pastes {
		return list
	}
	var out []lex.Token
	for i := 0; i < len(list); i++ {
		if !list[i].Is("##") || len(out) == 0 || i+1 >= len(list) {
			out = append(out, list[i])
			continue
		}
		last := &out[len(out)-1]
		if next := list[i+1]; len(last.Text)+len(next.Text) < maxPasted && last.Kind != lex.String && next.Kind != lex.String {
			last.Text += next.Text
		}
		i++
	}
	return out
}

// maxPasted is how long a name may become. Compilers' are shorter.
const maxPasted = 1000
