package javascript

import (
	"strconv"

	"github.com/llmsandbox/llmsandbox/internal/lex"
)

// pattern declares the names of the pattern at token i, which get the members of a value;
// without a scope they are only set. It returns the token behind.
func (b *binder) pattern(i int, sc *scope, src origin) int {
	if b.at(i).Is("...") {
		i, src = i+1, origin{expr: -1}
	}
	t := b.at(i)
	switch {
	case t.Kind == lex.Name:
		b.target(i, sc, src)
		return i + 1
	case (t.Is("{") || t.Is("[")) && t.pair > i && t.pair < len(b.tokens):
		if src.expr < 0 && !src.known.resolved() && b.at(t.pair+1).Is("=") && sc != nil {
			src = origin{expr: t.pair + 2}
		}
		if b.depth++; b.depth < maxDepth && len(src.path) < lex.MaxDepth {
			b.members(i, sc, src)
		}
		b.depth--
		return t.pair + 1
	}
	return i + 1
}

// target has the variable at token i get a value.
func (b *binder) target(i int, sc *scope, src origin) {
	if sc != nil {
		v := b.declare(sc, i)
		if src.expr < 0 && !src.known.resolved() && !b.at(i+1).Is("=") && !v.soft {
			v.open = true
		}
	}
	if src.expr >= 0 || src.known.resolved() {
		b.assign(i, src)
	}
}

// members goes over a pattern's members.
func (b *binder) members(open int, sc *scope, src origin) {
	array, n := b.tokens[open].Is("["), 0
	for i, end := open+1, b.tokens[open].pair; i < end; {
		b.facts.Step()
		t := b.at(i)
		if t.Is(",") {
			i, n = i+1, n+1
			continue
		}
		var s step
		at := i
		switch colon := b.at(i + 1); {
		case array:
			s.name = strconv.Itoa(n)
		case t.Is("[") && t.pair > i:
			s.at, at = i+1, t.pair+2
		case t.Is("..."):
			at = i
		case colon.Is(":"):
			s.name, at = t.Text, i+2
			b.tokens[i].plain = t.Kind == lex.Name
		default:
			s.name = t.Text
		}
		from := src
		if src.expr >= 0 || src.known.resolved() {
			from.path = append(src.path[:len(src.path):len(src.path)], s)
			if s.at > 0 && src.expr >= 0 {
				b.keys = append(b.keys, from)
			}
		}
		i = b.pattern(at, sc, from)
		for i < end && !b.tokens[i].Is(",") {
			b.facts.Step()
			i = b.over(i)
		}
	}
}

// imports reads an import statement at token i.
func (b *binder) imports(i int) {
	next := b.at(i + 1)
	if next.Kind == lex.Punct && !next.Is("{") && !next.Is("*") {
		return
	}
	if next.Kind == lex.String {
		b.modules = append(b.modules, i+1)
		return
	}
	if b.at(i + 2).Is("=") { // TypeScript's
		b.declare(b.inner(), i+1)
		return
	}
	end := i + 1
	for end < len(b.tokens) && b.tokens[end].Kind != lex.String && !b.tokens[end].Is(";") && !b.tokens[end].Is("(") {
		b.facts.Step()
		if end = b.over(end); end > i+64 && !b.at(end-1).Is("}") {
			return
		}
	}
	from := b.at(end)
	if from.Kind != lex.String || !b.at(end-1).Is("from") {
		return
	}
	b.modules = append(b.modules, end)
	b.tokens[end-1].plain = true
	src := origin{expr: -1, known: value{kind: isModule, text: moduleName(from.Text)}}
	top := b.open[0]
	for at := i + 1; at < end-1; at = b.over(at) {
		b.facts.Step()
		switch t := b.at(at); {
		case t.Is("{"):
			b.names(at, top, src)
		case t.Is("*") && b.at(at+1).Is("as"):
			b.tokens[at+1].plain = true
			b.target(at+2, top, src)
			at += 2
		case t.Is("type") && b.at(at+1).Kind != lex.Punct && !b.at(at+1).Is("from"),
			(t.Is("defer") || t.Is("source")) && (b.at(at+1).Is("*") || b.at(at+1).Kind == lex.Name && at+1 < end-1):
			b.tokens[at].plain = true
		case t.Kind == lex.Name:
			b.target(at, top, src)
		}
	}
}

// names declares those in the braces of an import.
func (b *binder) names(open int, sc *scope, src origin) {
	for i, end := open+1, b.tokens[open].pair; i < end; i++ {
		b.facts.Step()
		t := b.at(i)
		if t.Is("type") && b.at(i+1).Kind == lex.Name && !b.at(i+1).Is("as") {
			b.tokens[i].plain = true
			continue
		}
		if t.Kind != lex.Name && t.Kind != lex.String {
			continue
		}
		from := src
		from.path = []step{{name: t.Text}}
		if b.at(i+1).Is("as") && i+2 < end {
			b.tokens[i].plain, b.tokens[i+1].plain = true, true
			i += 2
		}
		if b.at(i).Kind == lex.Name {
			b.target(i, sc, from)
		}
	}
}

// exports reads an export statement at token i, for a module that it names.
func (b *binder) exports(i int) {
	end := i + 1
	for _, word := range []string{"type", "*", "as"} {
		if b.at(end).Is(word) {
			end++
		}
	}
	if end > i+1 && b.at(end).Kind == lex.Name && !b.at(end).Is("from") {
		end++
	}
	open := b.at(end)
	if open.Is("{") && open.pair > end {
		end = open.pair + 1
	}
	if !b.at(end).Is("from") || b.at(end+1).Kind != lex.String || end == i+1 {
		return
	}
	b.modules = append(b.modules, end+1)
	for ; i <= end; i++ {
		b.facts.Step()
		if b.tokens[i].Kind == lex.Name {
			b.tokens[i].plain = true
		}
	}
	if !open.Is("{") {
		return
	}
	module := moduleName(b.tokens[end+1].Text)
	for i := open.pair; i > 0 && !b.tokens[i].Is("{"); i-- {
		b.facts.Step()
		if t := b.tokens[i]; t.Kind == lex.Name && (b.at(i-1).Is("{") || b.at(i-1).Is(",")) {
			b.facts.Use(t.Span, module+"."+t.Text, false)
		}
	}
}
