package javascript

import "github.com/llmsandbox/llmsandbox/internal/lex"

// A binding is a variable that the program declares, or a global one that it sets.
type binding struct {
	sources []origin
	// soft tells that the declaration may leave what was there before.
	soft bool
	// open tells that it gets values that are not looked at.
	open  bool
	state uint8 // of value: 1 while it is looked for, 2 when it is known
	value value
}

// An origin is where a variable gets a value from.
type origin struct {
	expr  int // the token where an expression begins, or -1
	path  []step
	known value // instead of an expression
	// imports tells that it is the module that the expression names.
	imports bool
}

// A step is a member taken on the way.
type step struct {
	name string
	at   int // the token where an expression for it begins, where there is no name
}

// A scope is where names are declared, from a token up to another one.
type scope struct {
	start, end int
	function   bool
	names      map[string]*binding
}

// A binder finds what each name stands for.
type binder struct {
	*scan
	open    []*scope // those around the token being looked at
	ordered []*scope // all, by their starts
	pending map[int]*scope
	sets    []set
	// short are the scopes, by the bracket around, that end with the expression.
	short map[int][]*scope
	// declares are the scopes, by the bracket around, of a declaration's further names.
	declares map[int]*scope
}

// A set is a token whose variable gets a value.
type set struct {
	at int
	origin
}

// bind declares all names, and then finds the variable of each token.
func (s *scan) bind() {
	b := &binder{scan: s, pending: map[int]*scope{}, short: map[int][]*scope{}, declares: map[int]*scope{}}
	b.enter(&scope{end: len(s.tokens), function: true})
	for i := range s.tokens {
		b.leave(i)
		if sc := b.pending[i]; sc != nil {
			b.enter(sc)
		}
		b.token(i)
	}
	b.resolve()
	for _, set := range b.sets {
		v := s.vars[set.at]
		if v == nil {
			if v = s.globals[s.tokens[set.at].Text]; v == nil {
				v = &binding{soft: true}
				s.globals[s.tokens[set.at].Text] = v
			}
		}
		if set.expr < 0 && !set.known.resolved() {
			v.open = true
		} else if len(v.sources) < maxSources {
			v.sources = append(v.sources, set.origin)
		}
	}
}

func (b *binder) enter(sc *scope) {
	b.open = append(b.open, sc)
	b.ordered = append(b.ordered, sc)
}

func (b *binder) leave(i int) {
	for len(b.open) > 1 && b.open[len(b.open)-1].end < i {
		b.facts.Step()
		b.open = b.open[:len(b.open)-1]
	}
}

// begin has a scope begin at token i, unless one does already.
func (b *binder) begin(i, end int, function bool) *scope {
	if sc := b.pending[i]; sc != nil {
		return sc
	}
	sc := &scope{start: i, end: end, function: function}
	b.pending[i] = sc
	return sc
}

// inner is the scope around, outer that of the function around.
func (b *binder) inner() *scope { return b.open[len(b.open)-1] }

func (b *binder) outer() *scope {
	for i := len(b.open) - 1; i > 0; i-- {
		b.facts.Step()
		if b.open[i].function {
			return b.open[i]
		}
	}
	return b.open[0]
}

// declare has the name of token i stand for a variable of the scope.
func (b *binder) declare(sc *scope, i int) *binding {
	name := b.tokens[i].Text
	if sc.names == nil {
		sc.names = map[string]*binding{}
	}
	v := sc.names[name]
	if v == nil {
		v = &binding{soft: sc.start == 0 && sc.end == len(b.tokens) && given(name)}
		sc.names[name] = v
	}
	return v
}

// given tells of a name that a file has before it declares any.
func given(name string) bool {
	switch name {
	case "require", "module", "exports", "eval", "process", "globalThis", "global", "Function":
		return true
	}
	return false
}

// assign notes that the variable of token i gets a value.
func (b *binder) assign(i int, src origin) { b.sets = append(b.sets, set{i, src}) }

// resolve finds the variables: each scope's names lie above those of the scopes around.
func (b *binder) resolve() {
	above := map[string][]*binding{}
	var open []*scope
	next := 0
	pop := func() {
		for name := range open[len(open)-1].names {
			above[name] = above[name][:len(above[name])-1]
		}
		open = open[:len(open)-1]
	}
	b.vars = make([]*binding, len(b.tokens))
	for i := range b.tokens {
		for len(open) > 0 && open[len(open)-1].end < i {
			b.facts.Step()
			pop()
		}
		for ; next < len(b.ordered) && b.ordered[next].start == i; next++ {
			b.facts.Step()
			for name, v := range b.ordered[next].names {
				above[name] = append(above[name], v)
			}
			open = append(open, b.ordered[next])
		}
		if t := &b.tokens[i]; t.Kind == lex.Name && !t.plain {
			if list := above[t.Text]; len(list) > 0 {
				b.vars[i] = list[len(list)-1]
			}
		}
	}
}
