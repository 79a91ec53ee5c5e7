package ruby

import "github.com/llmsandbox/llmsandbox/internal/lex"

// starts tells whether a statement begins at token i.
func (b *binder) starts(i int) bool {
	p := b.at(i - 1)
	return p.Kind == 0 || p.Kind == lex.Newline || p.Is(";") || p.Is("{") || p.Is("|") || p.Is("(") || p.Is("do") || p.Is("then") || p.Is("else") || p.Is("begin")
}

// behindComma is the token behind the next comma of a statement, or -1.
func (s *scan) behindComma(i int) int {
	for n := 0; i >= 0 && i < len(s.tokens) && n < 256; i, n = s.over(i), n+1 {
		s.facts.Step()
		switch t := &s.tokens[i]; {
		case t.Is(","):
			return i + 1
		case t.Kind == lex.Newline || t.Is(";") || t.Is(")") || t.Is("}") || t.Is("]"):
			return -1
		}
	}
	return -1
}

// block declares the parameters of a block, between strokes from token i on.
func (b *binder) block(i int) {
	b.lambda(i - 2)
	if !b.at(i).Is("|") {
		return
	}
	first := true
	for at, n := i+1, 0; at < len(b.tokens) && n < 64 && !b.tokens[at].Is("|"); at, n = at+1, n+1 {
		b.facts.Step()
		if t := &b.tokens[at]; t.Kind == lex.Name && (!t.plain || t.label) {
			b.parameter(at)
			if first {
				if list := b.elements(i - 2); list >= 0 {
					v := b.vars[at]
					v.open, v.list = false, list+1
				}
			}
			first = false
		}
	}
}

// lambda declares the parameters of a lambda, which end at token i.
func (b *binder) lambda(i int) {
	from, end := i, i+1
	if t := b.at(i); t.Is(")") && t.pair > 0 {
		from, end = t.pair, i
	} else {
		for n := 0; n < 16 && (b.at(from).Kind == lex.Name || b.at(from).Is(",")); n++ {
			b.facts.Step()
			from--
		}
		from++
	}
	if !b.at(from - 1).Is("->") {
		return
	}
	for ; from < end; from++ {
		b.facts.Step()
		if t := b.at(from); t.Kind == lex.Name && (!t.plain || t.label) && isLocal(t.Text) {
			b.parameter(from)
		}
	}
}

// elements is the token of the list whose elements a block gets, before token i, or -1.
func (b *binder) elements(i int) int {
	if each, dot := b.at(i), b.at(i-1); each.Text == "each" && dot.Kind == lex.Punct {
		if t := b.at(i - 2); t.role == words {
			return i - 2
		} else if t.Is("]") && t.pair >= 0 && b.tokens[t.pair].begins {
			return t.pair
		}
	}
	return -1
}

// parameter declares the one at token i: here, whatever is around.
func (b *binder) parameter(i int) {
	b.facts.Take(8) // it may be declared anew in many places
	r := b.here()
	if r.names == nil {
		r.names = map[string]*binding{}
	}
	v := &binding{open: true}
	r.names[b.tokens[i].Text], b.vars[i] = v, v
}
