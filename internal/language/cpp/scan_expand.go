package cpp

import (
	"github.com/llmsandbox/llmsandbox/internal/language"
	"github.com/llmsandbox/llmsandbox/internal/lex"
)

// expand adds tokens to a stream with their macros expanded. Those of a macro are at the
// place at; nil for those of the code itself.
func (e *expander) expand(out *stream, tokens []lex.Token, at *language.Span, depth int) {
	for i := 0; i < len(tokens); i++ {
		e.Step()
		t := tokens[i]
		m := e.macros[t.Text]
		if t.Kind == lex.Name && m != nil && m.gone && m.pastes {
			e.Compute(t.Span, language.ComputedName)
		}
		if t.Kind != lex.Name || m == nil || m.busy || m.gone {
			out.tokens, out.made = append(out.tokens, t), append(out.made, at != nil)
			continue
		}
		var args [][]lex.Token
		if m.function {
			var end int
			if args, end = e.arguments(tokens, i+1); end < 0 {
				out.tokens, out.made = append(out.tokens, t), append(out.made, at != nil)
				continue
			}
			i = end
		}
		place := t.Span
		if m.again && m.pastes {
			e.Compute(place, language.ComputedName)
		}
		if depth >= lex.MaxDepth || !e.budget.Take(len(m.body)) {
			if !e.over {
				e.over = true
				e.Compute(place, language.ComputedName)
			}
			continue
		}
		made := e.substitute(m, args, place, depth)
		m.busy = true
		e.expand(out, made, &place, depth+1)
		m.busy = false
	}
}

// arguments reads those of a macro, whose bracket is expected at i, and where they end.
func (e *expander) arguments(tokens []lex.Token, i int) (args [][]lex.Token, end int) {
	if i >= len(tokens) || !tokens[i].Is("(") {
		return nil, -1
	}
	depth, start := 0, i+1
	for ; i < len(tokens); i++ {
		e.Step()
		switch {
		case tokens[i].Is("("):
			depth++
		case tokens[i].Is(")"):
			if depth--; depth == 0 {
				return append(args, tokens[start:i]), i
			}
		case tokens[i].Is(",") && depth == 1:
			args = append(args, tokens[start:i])
			start = i + 1
		}
		if i-start > maxArgument {
			break
		}
	}
	if !e.budget.Take(i - start) {
		e.budget = 0 // whoever never closes brackets has nothing expanded any more
	}
	return nil, -1
}

// maxArgument is how many tokens an argument may have for its macro to be expanded.
const maxArgument = 2000
