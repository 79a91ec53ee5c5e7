package javascript

import "github.com/llmsandbox/llmsandbox/internal/lex"

// arrow begins the scope of an arrow function whose parameters begin at token i and whose
// body at token body.
func (b *binder) arrow(i, body int) *scope {
	t := b.at(body)
	if t.Is("{") && t.pair >= 0 {
		sc := b.begin(i, t.pair, true)
		if sc.start == i && b.inner() != sc {
			b.enter(sc)
		}
		return sc
	}
	sc := b.begin(i, b.limit(i), true)
	b.enter(sc)
	around := b.tokens[i].in
	b.short[around] = append(b.short[around], sc)
	return sc
}

// limit is the last token inside the bracket around token i.
func (b *binder) limit(i int) int {
	if in := b.tokens[i].in; in >= 0 && b.tokens[in].pair >= 0 {
		return b.tokens[in].pair - 1
	}
	return len(b.tokens)
}

// paren looks at what the brackets at token i declare: parameters, a loop's variables.
func (b *binder) paren(i int) {
	t := &b.tokens[i]
	if t.pair < 0 || t.pair >= len(b.tokens) {
		return
	}
	after, before := b.at(t.pair+1), b.at(i-1)
	switch {
	case after.Is("=>"):
		b.parameters(i, b.arrow(i, t.pair+2))
	case t.role == params:
		end := t.pair
		if after.Is("{") && after.pair >= 0 {
			end = after.pair
		}
		sc := b.begin(i, end, true)
		if b.inner() != sc {
			b.enter(sc)
		}
		b.parameters(i, sc)
	case t.role == control && (before.Is("for") || before.Is("await") || before.Is("catch")):
		sc := b.begin(i, t.pair, false)
		if after.Is("{") && after.pair >= 0 {
			sc.end = after.pair
		} else {
			sc.end = b.limit(i)
			b.short[t.in] = append(b.short[t.in], sc)
		}
		b.enter(sc)
		if before.Is("catch") {
			b.pattern(i+1, sc, origin{expr: -1})
		}
	}
}

// parameters declares those in the brackets at token i.
func (b *binder) parameters(i int, sc *scope) {
	src := b.resolvedValue(i)
	for at, end := i+1, b.tokens[i].pair; at < end; {
		b.facts.Step()
		at = b.pattern(at, sc, src)
		for at < end && !b.tokens[at].Is(",") {
			b.facts.Step()
			at = b.over(at)
		}
		at++
		src = origin{expr: -1}
	}
}

// function declares a function's name and begins its scope.
func (b *binder) function(i int) {
	at := i + 1
	if b.at(at).Is("*") {
		at++
	}
	if b.at(at).Kind == lex.Name {
		if sc := b.inner(); b.tokens[i].begins || b.at(i-1).Is("async") || b.at(i-1).Is("default") || b.at(i-1).Is("export") {
			b.declare(sc, at).open = true
		} else if open := b.at(at + 1); open.Is("(") && open.pair >= 0 {
			// Its own name is known only inside of it.
			end := open.pair
			if body := b.at(end + 1); body.Is("{") && body.pair >= 0 {
				end = body.pair
			}
			sc := b.begin(at+1, end, true)
			b.declare(sc, at).open = true
			b.tokens[at].plain = true
		}
	}
}
