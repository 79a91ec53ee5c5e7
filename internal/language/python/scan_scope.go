package python

type scopeKind uint8

const (
	moduleScope scopeKind = iota
	classScope
	functionScope // a comprehension too
)

// A scope is where names are bound.
type scope struct {
	parent *scope
	kind   scopeKind
	column int    // of the line that begins it; -1: it does not end with a line
	title  string // of a class or a function
	names  map[string]*binding
	others map[string]bool // names that are said to be bound further out
}

// A binding is what is known of a name.
type binding struct {
	meaning meaning
	// pass is the one that count belongs to, of the times it is bound; total is the
	// highest.
	pass, count, total int
	// firm is the place from which on a module's name is surely bound; 0: there is none.
	firm    int
	deleted bool
}

// enter returns the scope that begins at a place.
func (s *scanner) enter(at int, kind scopeKind, column int) *scope {
	key := s.base + at*4 + int(kind)
	sc := s.scopes[key]
	if sc == nil {
		sc = &scope{parent: s.scope, kind: kind, names: map[string]*binding{}}
		s.scopes[key] = sc
	}
	sc.column = column
	return sc
}

// bind notes that a name is bound; at is where from, or 0 where that is not sure.
func (s *scanner) bind(sc *scope, name string, m meaning, at int) {
	if sc.others[name] {
		sc, at = s.module, 0
	}
	b := sc.names[name]
	if b == nil {
		b = &binding{}
		sc.names[name] = b
	}
	if b.pass != s.pass {
		b.pass, b.count = s.pass, 0
	}
	b.count++
	b.total = max(b.total, b.count)
	if s.emit {
		return
	}
	if at > 0 && (b.firm == 0 || at < b.firm) {
		b.firm = at
	}
	if sc.kind == classScope && m.kind == named && sc.title != "" {
		s.hold(sc.title+"."+name, m)
		s.hold("self."+name, m)
	}
	switch {
	case m.known():
		old := b.meaning
		if old.kind != m.kind || old.text != m.text {
			s.derived++
		}
		if old.kind != named || m.kind != named || !builtin(m.text) || builtin(old.text) {
			b.meaning = m
		}
	case m.kind == text || m.kind == number || m.kind == list:
		if !b.meaning.known() {
			b.meaning = m
		}
	}
}

// hold notes what a member, or what a function returns, stands for.
func (s *scanner) hold(path string, m meaning) {
	if m.kind == named {
		s.held = true
		s.bind(s.module, path, m, 0)
	}
}

// lookup finds what a name stands for at a place.
func (s *scanner) lookup(name string, at int) meaning {
	for sc := s.scope; sc != nil; sc = sc.parent {
		s.facts.Step()
		if sc.kind == classScope && sc != s.scope {
			continue
		}
		b := sc.names[name]
		if b == nil {
			continue
		}
		switch {
		case b.meaning.known():
			return b.meaning
		case b.meaning.kind != unknown:
			if b.total == 1 && !s.rebinds && (sc.kind != moduleScope || !builtin(name)) {
				return b.meaning
			}
			if sc.kind == functionScope {
				return meaning{}
			}
		case sc.kind == functionScope:
			return meaning{}
		}
		if sc.kind == moduleScope && (!builtin(name) || b.firm > 0 && b.firm <= at && !b.deleted) {
			return meaning{}
		}
	}
	return s.free(name)
}

// free is what a name stands for that nothing binds.
func (s *scanner) free(name string) meaning {
	switch name {
	case "__builtins__":
		return meaning{kind: named, text: "builtins"}
	case "__name__", "__file__", "__doc__", "__package__", "__path__", "__all__", "__version__", "__class__", "_", "self", "cls":
		return meaning{}
	}
	if len(s.stars) > 0 && !(builtin(name) && !s.starred(name)) {
		return meaning{kind: named, text: join(s.star(name), name)}
	}
	return meaning{kind: named, text: name}
}

func (s *scanner) starred(name string) bool {
	for _, m := range s.stars {
		if exported(m, name) {
			return true
		}
	}
	return false
}

// star is the module whose star import most likely brings a name.
func (s *scanner) star(name string) string {
	for _, m := range s.stars {
		if exported(m, name) {
			return m
		}
	}
	return s.stars[len(s.stars)-1]
}

// join is the name of a member.
func join(of, member string) string {
	if of == "builtins" {
		return member
	}
	return of + "." + member
}
