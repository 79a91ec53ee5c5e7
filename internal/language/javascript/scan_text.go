package javascript

import (
	"github.com/llmsandbox/llmsandbox/internal/lex"
)

// constant is the text that the tokens from i up to end are, if they are strings with a + between
// them. It evaluates nothing but what the names of attacks are mostly taken apart with: templates,
// brackets, names of constants, lists that are joined.
func (r *reader) constant(i, end int) (string, bool) {
	text, behind, ok := r.text(i, 0)
	return text, ok && behind == end
}

// text is the text at token i, and the token behind.
func (r *reader) text(i, depth int) (text string, behind int, ok bool) {
	text, i, ok = r.piece(i, depth)
	if !ok || !r.Is(i, "+") {
		return text, i, ok
	}
	var all []byte
	for ok = r.add(&all, text); ok && r.Is(i, "+"); {
		r.Step()
		text, i, ok = r.piece(i+1, depth)
		ok = ok && r.add(&all, text)
	}
	return string(all), i, ok
}

// add adds to a text that is put together, within the budget.
func (r *reader) add(all *[]byte, text string) bool {
	ok := r.budget.Take(len(text))
	if ok {
		*all = append(*all, text...)
	}
	return ok
}

func (r *reader) piece(i, depth int) (text string, behind int, ok bool) {
	if i >= len(r.Tokens) || depth == lex.MaxDepth {
		return "", i, false
	}
	t := &r.Tokens[i]
	switch end := r.Partner[i]; {
	case t.Kind == lex.String && t.Constant:
		return t.Text, i + 1, true
	case r.role(i) == lex.Head:
		return r.template(i, depth+1)
	case r.isVariable(i):
		// While declarations are read, those that have begun are what there is.
		if o := r.owned[t.Text]; o != nil && o.ok && (r.marks[i].own || i < o.end && len(o.scopes) > 0) {
			return o.text, i + 1, true
		}
	case r.role(i) == group && end > i:
		text, behind, ok = r.text(i+1, depth+1)
		return text, end + 1, ok && behind == end
	case r.role(i) == list && end > i && r.Is(end+1, ".") && r.Is(end+2, "join") && r.Is(end+3, "("):
		return r.joined(i, end+3, depth+1)
	}
	return "", i, false
}

// template is the text of the template at token i, if all that is inserted is text.
func (r *reader) template(i, depth int) (text string, behind int, ok bool) {
	var all []byte
	for ok = r.add(&all, r.Tokens[i].Text); ok && r.role(i) != lex.Tail; ok = ok && r.add(&all, r.Tokens[i].Text) {
		r.Step()
		end := r.Partner[i+1]
		if end < 0 || end+1 == len(r.Tokens) {
			return "", i, false
		}
		text, behind, ok = r.text(i+2, depth)
		ok = ok && behind == end && r.add(&all, text)
		i = end + 1
	}
	return string(all), i + 1, ok
}

// joined is the text of the list at token i that is joined with what the brackets at token by hold.
func (r *reader) joined(i, by, depth int) (text string, behind int, ok bool) {
	separator := ","
	if args := r.Args(by); len(args) > 0 {
		if separator, behind, ok = r.text(args[0][0], depth); !ok || behind != args[0][1] {
			return "", i, false
		}
	}
	var all []byte
	for n, arg := range r.Args(i) {
		text, behind, ok = r.text(arg[0], depth)
		if !ok || behind != arg[1] || n > 0 && !r.add(&all, separator) || !r.add(&all, text) {
			return "", i, false
		}
	}
	return string(all), r.Skip(by), true
}
