package ruby

import "github.com/llmsandbox/llmsandbox/internal/lex"

// A binding is a variable or a constant.
type binding struct {
	sources []int // the tokens where what it gets begins
	// open tells that it gets values, or is changed, in ways that are not looked at.
	open bool
	// list is the token behind the start of a list whose elements it gets, one after the
	// other, or 0.
	list  int
	state uint8 // of value: 1 while it is looked for, 2 when it is known
	value value
}

// An owner is a class or a module, or the file, with the methods that it defines.
type owner struct{ methods map[string]bool }

// A region is what begins with a keyword or a brace, and has local variables.
type region struct {
	names map[string]*binding
	// closed tells that names from around are not seen.
	closed bool
	owner  *owner
	// brace is the token of the brace that it is in, or -1 where end ends it.
	brace int
	def   string // the method that it is
}

// A binder finds what each name stands for.
type binder struct {
	*scan
	open []region
	loop bool // a do is the loop's that has begun
}

// bind finds the local variables, as they are given their first values, and the methods that
// the program defines.
func (s *scan) bind() {
	s.vars, s.owners = make([]*binding, len(s.tokens)), make([]*owner, len(s.tokens))
	s.top = &owner{methods: map[string]bool{}}
	b := &binder{scan: s, open: []region{{closed: true, owner: s.top, brace: -1}}}
	for i := range s.tokens {
		switch t := &s.tokens[i]; t.Kind {
		case lex.Punct:
			b.punct(i)
		case lex.Newline:
			b.loop = false
		case lex.Name:
			if !t.plain {
				b.name(i)
			}
		}
	}
}

func (b *binder) here() *region { return &b.open[len(b.open)-1] }

func (b *binder) enter(r region) {
	if r.owner == nil {
		r.owner = b.here().owner
	}
	b.open = append(b.open, r)
}

func (b *binder) punct(i int) {
	switch t := &b.tokens[i]; t.Text {
	case "{", "#{":
		b.enter(region{brace: i})
		b.block(i + 1)
	case "}":
		for n := len(b.open) - 1; n > 0 && t.pair >= 0; n-- {
			b.facts.Step()
			if b.open[n].brace == t.pair {
				b.open = b.open[:n]
				break
			}
		}
	case "=", "||=", "&&=":
		b.assign(i)
	case "+=", "-=", "*=", "/=", "<<", "<<=":
		if v := b.variable(i - 1); v != nil {
			v.open = true
		}
	case ".", "&.":
		if v := b.variable(i - 1); v != nil && changes(b.at(i+1).Text) {
			v.open = true
		}
	case "=>":
		if n := b.at(i + 1); n.Kind == lex.Name && !n.plain && isLocal(n.Text) && b.rescues(i) {
			b.declare(i + 1).open = true
		}
	}
}

// rescues tells whether the => at token i names an error that is rescued.
func (b *binder) rescues(i int) bool {
	for at, n := i-1, 0; at >= 0 && n < 32 && b.tokens[at].Kind != lex.Newline; at, n = at-1, n+1 {
		b.facts.Step()
		if b.tokens[at].Is("rescue") {
			return true
		}
	}
	return false
}
