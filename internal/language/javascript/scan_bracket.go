package javascript

import "github.com/llmsandbox/llmsandbox/internal/lex"

// open reads an opening bracket and tells what it is of.
func (l *lexer) open(c byte) {
	var r role
	outer, prev := l.top(), l.last()
	f := frame{at: len(l.tokens)}
	switch c {
	case '[':
		if r = list; l.operand() {
			r = subscript
		}
	case '(':
		switch {
		case outer.body != 0 && !outer.isClass:
			r = params
		case prev != nil && prev.Kind == lex.Name && !prev.plain && isControl(prev.Text), prev != nil && prev.Is("await") && l.awaited():
			r = control
		case l.method():
			r = params
		case l.operand():
			r = call
		default:
			r = group
		}
	case '{':
		r = l.brace()
		outer.body, outer.isClass = 0, false
	}
	f.role = r
	l.Pos++
	l.add(lex.Punct, l.Pos-1, string(c)).role = r
	l.frames = append(l.frames, f)
}

func isControl(word string) bool {
	switch word {
	case "if", "for", "while", "with", "switch", "catch":
		return true
	}
	return false
}

// awaited tells whether the last tokens are for await.
func (l *lexer) awaited() bool {
	n := len(l.tokens)
	return n > 1 && l.tokens[n-2].Is("for") && !l.tokens[n-2].plain
}

// method tells whether the last token is the name of a method in a class or an object.
func (l *lexer) method() bool {
	f, t := l.top(), l.last()
	if f.role != class && f.role != classExpr && f.role != object || t == nil {
		return false
	}
	first := len(l.tokens) - 1
	if t.Is("]") && t.pair > f.at {
		first = t.pair
	} else if t.Kind == lex.Punct {
		return false
	}
	return l.keyed(first, f)
}

// keyed tells whether a key of the object or a member of the class f begins at token i, words
// like static before it.
func (l *lexer) keyed(i int, f *frame) bool {
	for ; i-1 > f.at; i-- {
		l.facts.Step()
		p := &l.tokens[i-1]
		switch p.Text {
		case "get", "set", "static", "async", "*", "accessor":
			if p.Kind == lex.Name && !p.plain {
				return false
			}
			continue
		case ",":
			return f.role == object && p.Kind == lex.Punct
		case ";", "}":
			return f.role != object && p.Kind == lex.Punct
		}
		return f.role != object && i < len(l.tokens) && l.tokens[i].line && p.Text != "="
	}
	return true
}

// brace tells what a { is of.
func (l *lexer) brace() role {
	f, prev := l.top(), l.last()
	switch {
	case prev == nil:
		return block
	case prev.Is("=>"):
		return arrow
	case f.isClass && !prev.Is("extends"):
		return f.body
	case prev.Is(")") && prev.role == params:
		if f.body != 0 {
			return f.body
		}
		return function
	case prev.Is(")") && prev.role == control:
		return block
	case prev.Is("static") && (f.role == class || f.role == classExpr):
		return function
	case l.begins():
		return block
	case l.operand():
		return block
	}
	return object
}

// close reads a closing bracket. One that closes nothing is a mistake in the code.
func (l *lexer) close(c byte) {
	f := *l.top()
	l.Pos++
	if f.at < 0 || !pairs(l.tokens[f.at].Text, c) {
		l.trouble("a bracket is closed that was not opened")
		l.add(lex.Punct, l.Pos-1, string(c))
		return
	}
	l.frames = l.frames[:len(l.frames)-1]
	n := len(l.tokens)
	t := l.add(lex.Punct, l.Pos-1, string(c))
	t.role, t.pair, l.tokens[f.at].pair = f.role, f.at, n
	if f.role == insertion {
		l.template(l.Pos, f.head)
	}
}

func pairs(open string, c byte) bool {
	switch c {
	case ')':
		return open == "("
	case ']':
		return open == "["
	}
	return open == "{" || open == "${"
}
