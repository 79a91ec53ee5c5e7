package javascript

import "github.com/llmsandbox/llmsandbox/internal/lex"

// token looks at token i for what it declares or sets.
func (b *binder) token(i int) {
	t := &b.tokens[i]
	around := t.in
	if t.Kind == lex.Punct {
		switch t.Text {
		case ",", ";", ")", "]", "}":
			of := around
			if t.pair >= 0 {
				b.shorten(t.pair, i) // what lies inside the bracket that ends here
			} else {
				b.shorten(of, i)
			}
			if t.Text == ";" {
				delete(b.declares, of)
			}
			if sc := b.declares[of]; t.Text == "," && sc != nil {
				b.pattern(i+1, sc, origin{expr: -1})
			}
		case "(":
			b.paren(i)
		case "{":
			if t.role <= arrow && t.role != object && t.pair >= 0 {
				if b.pending[i] == nil {
					b.enter(b.begin(i, t.pair, false))
				}
			}
		case "=", "||=", "&&=", "??=":
			if p := b.at(i - 1); (p.Is("]") && p.role == list || p.Is("}") && p.role == object) && t.Text == "=" {
				b.pattern(p.pair, nil, origin{expr: i + 1})
			}
		}
		return
	}
	if t.Kind != lex.Name || t.plain {
		return
	}
	if t.line && t.begins {
		b.shorten(around, i)
		delete(b.declares, around)
	}
	next := b.at(i + 1)
	switch t.Text {
	case "var", "let", "const", "using":
		if next.Kind != lex.Name && !next.Is("[") && !next.Is("{") || next.Is("in") || next.Is("of") || next.Is("instanceof") {
			break
		}
		sc := b.inner()
		if t.Text == "var" {
			sc = b.outer()
		}
		b.declares[around] = sc
		b.pattern(i+1, sc, origin{expr: -1})
		return
	case "function":
		b.function(i)
		return
	case "class":
		if next.Kind == lex.Name && !next.Is("extends") {
			b.declare(b.inner(), i+1).open = true
		}
		return
	case "import":
		b.imports(i)
		return
	case "export":
		b.exports(i)
		return
	}
	if next.Kind == lex.Punct {
		switch next.Text {
		case "=":
			b.assign(i, origin{expr: i + 2})
		case "||=", "&&=", "??=":
			b.assign(i, origin{expr: i + 2})
		case "+=", "-=", "*=", "/=", "%=", "**=", "<<=", ">>=", ">>>=", "&=", "|=", "^=", "++", "--":
			b.assign(i, origin{expr: -1})
		case "=>":
			b.declare(b.arrow(i, i+2), i)
			b.assign(i, b.resolvedValue(i))
		}
	} else if p := b.at(i - 1); p.Is("(") && p.role == control && (next.Is("of") || next.Is("in")) {
		b.assign(i, origin{expr: -1})
	}
}

// shorten ends the scopes of expressions that end at token i, inside the bracket around.
func (b *binder) shorten(around, i int) {
	list := b.short[around]
	if len(list) == 0 {
		return
	}
	for _, sc := range list {
		sc.end = min(sc.end, i-1)
	}
	delete(b.short, around)
	b.leave(i)
}

// resolvedValue is what the first parameter at token i gets: of a function that is given to
// the then of an import, the module.
func (b *binder) resolvedValue(i int) origin {
	open := b.tokens[i].in
	if open < 4 || !b.tokens[open].Is("(") {
		return origin{expr: -1}
	}
	if p := b.at(i - 1); !p.Is("(") && !p.Is("async") && !p.Is("function") {
		return origin{expr: -1}
	}
	if then, dot, end := b.at(open-1), b.at(open-2), b.at(open-3); then.Text == "then" && dot.Kind == lex.Punct && end.Is(")") && end.pair > 0 && b.tokens[end.pair-1].Is("import") {
		return origin{expr: end.pair + 1, imports: true}
	}
	return origin{expr: -1}
}
