package ruby

import "github.com/llmsandbox/llmsandbox/internal/lex"

// changes tells of a method that it changes the string it is called of.
func changes(name string) bool {
	switch name {
	case "concat", "replace", "insert", "prepend", "clear", "setbyte", "[]=", "append_as_bytes", "append", "push":
		return true
	}
	return len(name) > 1 && name[len(name)-1] == '!'
}

func isLocal(name string) bool {
	return name[0] == '_' || name[0] >= 'a' && name[0] <= 'z' || name[0] >= 0x80
}

// variable is the variable or constant of the name at token i, or nil.
func (b *binder) variable(i int) *binding {
	t := b.at(i)
	if t.Kind != lex.Name || t.plain {
		return nil
	}
	if isLocal(t.Text) {
		return b.vars[i]
	}
	return b.shared[t.Text]
}

// find is the local variable that a name is here, or nil.
func (b *binder) find(name string) *binding {
	for n, r := 0, len(b.open)-1; r >= 0 && n < maxDepth; n, r = n+1, r-1 {
		b.facts.Step()
		if v := b.open[r].names[name]; v != nil {
			return v
		}
		if b.open[r].closed {
			break
		}
	}
	return nil
}

// declare has the name at token i stand for a variable.
func (b *binder) declare(i int) *binding {
	name := b.tokens[i].Text
	if !isLocal(name) {
		v := b.shared[name]
		if v == nil {
			v = &binding{}
			b.shared[name] = v
		}
		return v
	}
	v := b.find(name)
	if v == nil {
		v = &binding{}
		r := b.here()
		if r.names == nil {
			r.names = map[string]*binding{}
		}
		r.names[name] = v
	}
	b.vars[i] = v
	return v
}

// assign looks at the assignment at token i.
func (b *binder) assign(i int) {
	n, first := 0, i-1
	for ; b.at(first-1).Is(",") && b.at(first-2).Kind == lex.Name && n < 32; n++ {
		b.facts.Step()
		first -= 2
	}
	if t := b.at(i - 1); t.Kind != lex.Name || t.plain || n > 0 && !b.starts(first) {
		if n == 0 || t.Kind != lex.Name {
			return
		}
		first, n = i-1, 0
	}
	from := i + 1
	for at := first; at < i; at += 2 {
		b.facts.Step()
		t := &b.tokens[at]
		if t.plain || isOpening(t.Text) || isEnding(t.Text) {
			continue
		}
		v := b.declare(at)
		switch {
		case from < 0:
			v.open = true
		case len(v.sources) < maxSources:
			v.sources = append(v.sources, from)
		}
		if n > 0 {
			from = b.behindComma(from)
		}
	}
}
