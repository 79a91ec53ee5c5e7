package ruby

import "github.com/llmsandbox/llmsandbox/internal/lex"

// name looks at the name at token i: a keyword that begins or ends something, or what may be
// a variable.
func (b *binder) name(i int) {
	t := &b.tokens[i]
	b.owners[i] = b.here().owner
	switch t.Text {
	case "def":
		b.def(i)
	case "class", "module":
		if next := b.at(i + 1); next.Is("<<") {
			b.enter(region{closed: true, owner: &owner{methods: map[string]bool{}}, brace: -1})
		} else if t.begins {
			for at := i + 1; b.at(at).Kind == lex.Name && !b.at(at).plain || b.at(at).Is("::"); at++ {
				b.facts.Step()
				b.tokens[at].plain = b.tokens[at].Kind == lex.Name
			}
			b.enter(region{closed: true, owner: &owner{methods: map[string]bool{}}, brace: -1})
		}
	case "begin", "case":
		b.enter(region{brace: -1})
	case "if", "unless":
		if t.begins {
			b.enter(region{brace: -1})
		}
	case "while", "until", "for":
		if t.begins {
			b.enter(region{brace: -1})
			b.loop = true
		}
		if next := b.at(i + 1); t.Text == "for" && next.Kind == lex.Name {
			b.declare(i + 1).open = true
		}
	case "do":
		if b.loop {
			b.loop = false
			break
		}
		b.enter(region{brace: -1})
		b.block(i + 1)
	case "end":
		if n := len(b.open) - 1; n > 0 && b.open[n].brace < 0 {
			b.open = b.open[:n]
		}
	case "super":
		for r := len(b.open) - 1; r > 0; r-- {
			b.facts.Step()
			if name := b.open[r].def; name != "" {
				b.open[r].owner.methods[name] = false
				break
			}
		}
	case "alias", "undef":
		b.rename(i)
	default:
		if isLocal(t.Text) {
			if v := b.find(t.Text); v != nil {
				b.vars[i] = v
			}
		}
	}
}

// def looks at the definition of a method at token i.
func (b *binder) def(i int) {
	at := i + 1
	own := false
	for b.at(at+1).Is(".") && b.at(at).Kind == lex.Name {
		b.facts.Step()
		at, own = at+2, true
	}
	name := b.at(at)
	r := region{closed: true, brace: -1}
	if name.Kind == lex.Name {
		r.def = name.Text
		here := b.here()
		if _, known := here.owner.methods[name.Text]; !own && !known && (len(b.open) == 1 || here.closed && here.def == "") {
			here.owner.methods[name.Text] = true
		}
	}
	end, open := at+1, b.at(at+1)
	if open.Is("(") && open.pair > 0 {
		end = open.pair + 1
	}
	endless := b.at(end).Is("=") && name.Kind == lex.Name
	if endless {
		// Its body has no end: what it declares is seen behind it, too.
		for p := at + 2; p < end-1; p++ {
			b.facts.Step()
			b.argument(p)
		}
		return
	}
	b.enter(r)
	if open.Is("(") {
		for p := at + 2; p < end-1 && p < len(b.tokens); p++ {
			b.facts.Step()
			b.argument(p)
		}
		return
	}
	for p, n := at+1, 0; p < len(b.tokens) && n < 256 && b.tokens[p].Kind != lex.Newline && !b.tokens[p].Is(";"); p, n = p+1, n+1 {
		b.facts.Step()
		b.argument(p)
	}
}

// argument declares a method's parameter if one is at token i.
func (b *binder) argument(i int) {
	t := b.at(i)
	if t.Kind != lex.Name || t.plain && !t.label || !isLocal(t.Text) {
		return
	}
	if p := b.at(i - 1); p.Is("(") || p.Is(",") || p.Is("*") || p.Is("**") || p.Is("&") || p.Kind == lex.Name {
		b.parameter(i)
	}
}

// rename looks at alias or undef at token i.
func (b *binder) rename(i int) {
	made, old := b.at(i+1), b.at(i+2)
	if made.Kind == lex.Name {
		b.tokens[i+1].plain = true
	}
	if b.tokens[i].Text == "undef" {
		for _, o := range []*owner{b.here().owner, b.top} {
			o.methods[made.Text] = false
		}
		return
	}
	if old.Kind == lex.Name || old.Kind == lex.String {
		b.alias[made.Text] = old.Text
	}
}
