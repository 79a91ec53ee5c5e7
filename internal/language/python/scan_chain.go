package python

import (
	"slices"
	"strings"

	"github.com/llmsandbox/llmsandbox/internal/language"
	"github.com/llmsandbox/llmsandbox/internal/lex"
)

const (
	// maxName bounds a dotted name.
	maxName = 256
	// maxNames bounds what one expression may stand for.
	maxNames = 16
)

// A link is an expression so far: a name with the members, calls and indexes behind it.
type link struct {
	first int           // the token that the expression begins with
	names []string      // what it may stand for, if that has names
	at    language.Span // where the last of its names is written
	told  bool          // its use is reported
}

// A call is a link with brackets behind it, round ones or those of an index.
type call struct {
	link
	open  int
	given []string // what the first argument may stand for
	args  [][2]int
}

// chain reads what follows an expression and returns where to go on. At brackets it stops, and
// goes on where they close.
func (r *reader) chain(l link, i int) int {
	for {
		r.Step()
		switch {
		case r.Is(i, ".") && r.At(i+1).Kind == lex.Name:
			r.member(&l, i+1)
			i += 2
		case r.Is(i, "(", "["):
			if r.Partner[i] > i {
				r.calls = append(r.calls, call{link: l, open: i})
			} else {
				r.tell(&l, r.Is(i, "("))
			}
			return i + 1
		case r.Is(l.first-1, ":=") && r.At(l.first-2).Kind == lex.Name:
			r.alias(l.first-2, l.names)
			l.first -= 2
		case r.Is(l.first-1, "(") && r.Partner[l.first-1] == i && !r.isOperand(l.first-2):
			l.first-- // the brackets are around nothing but the expression
			i++
		default:
			r.finish(&l, i)
			return i
		}
	}
}

// finish ends an expression, or an operand of one, before token i.
func (r *reader) finish(l *link, i int) {
	r.tell(l, r.Is(r.statement, "@") && l.first-1 == r.statement)
	for _, name := range l.names {
		switch actionOf(name) {
		case imports, loads:
			r.Compute(l.at, language.ComputedImport)
		case executes:
			r.Compute(l.at, language.ComputedCode)
		case gets, picks:
			r.Compute(l.at, language.ComputedName)
		}
	}
	if n := len(r.calls) - 1; n >= 0 && r.calls[n].open == l.first-1 && r.Is(i, ",", ")", "]") {
		r.calls[n].given = l.names
	}
	if l.first == r.value && r.ends(i) {
		for _, k := range r.assigned {
			r.alias(k, l.names)
		}
	}
}

// alias binds the name at token i to what it may stand for.
func (r *reader) alias(i int, of []string) {
	for _, o := range of {
		r.Bind(r.names, r.Tokens[i].Text, o)
	}
}

// tell tells the use of an expression.
func (r *reader) tell(l *link, call bool) {
	if !l.told {
		r.uses(l.names, l.at, call)
	}
	l.told = true
}

// uses tells the use of names, but not of those that only results have here.
func (r *reader) uses(names []string, at language.Span, call bool) {
	for _, name := range names {
		top, _, _ := strings.Cut(name, ".")
		r.rebinds = r.rebinds || rebinding()[name] || rebinding()[top]
		if !strings.HasPrefix(name, "globals()") && !strings.HasPrefix(name, getter) {
			r.Use(at, name, call)
		}
	}
}

// member goes on to the member that is named by token i.
func (r *reader) member(l *link, i int) {
	t := &r.Tokens[i]
	builtin := t.Text == "__import__" && (slices.Contains(l.names, "builtins") || slices.Contains(l.names, "importlib"))
	switch {
	case t.Text == "__call__":
		return
	case t.Text == "load_module" && len(l.names) == 0: // of any loader
		l.names, l.at, l.told = []string{"imp.load_module"}, t.Span, true
		return
	case introspective()[t.Text] && !builtin:
		r.tell(l, false)
		l.names, l.at = r.inner(l.names, t.Text, t.Span, r.Is(i+1, "(")), t.Span
		return
	case l.told || len(l.names) == 0:
		l.at = t.Span
	}
	l.names = r.members(l.names, t.Text, t.Span)
	l.at.End, l.told = t.End, false
}

// members are the members of that name which modules or objects have. A module that another
// one has as a member is imported.
func (r *reader) members(of []string, name string, at language.Span) (all []string) {
	shared := sharedModule(name)
	for _, o := range of {
		top, _, _ := strings.Cut(o, ".")
		if shared != "" && o != shared && o != "builtins" && !builtins()[top] {
			r.Import(at, shared)
			o = shared
		} else {
			o = r.join(o, name)
		}
		all = r.add(all, o)
	}
	return all
}

// join is the name of a member; builtins have bare names.
func (r *reader) join(of, member string) string {
	if of == "builtins" && member != "__dict__" {
		return member
	}
	r.Take(len(of))
	if len(of)+len(member) >= maxName {
		r.Trouble("a name in it is longer than what is looked at")
		return of
	}
	return of + "." + member
}

// add adds names to those that an expression may stand for.
func (r *reader) add(all []string, names ...string) []string {
	for _, n := range names {
		switch {
		case slices.Contains(all, n):
		case len(all) == maxNames:
			r.Trouble("an expression in it stands for more than is looked at")
		default:
			all = append(all, n)
		}
	}
	return all
}

// inner tells the use of an introspective member, and returns what that may stand for. A
// dictionary of names has the name of what returns it: "globals()", "os.__dict__".
func (r *reader) inner(of []string, name string, at language.Span, called bool) (all []string) {
	r.uses([]string{name}, at, called)
	switch name {
	case "__builtins__", "f_builtins":
		return []string{"builtins"}
	case "__globals__", "f_globals", "f_locals":
		return []string{"globals()"}
	case "__import__":
		return []string{name}
	case "__dict__", "__getattribute__", "__getattr__":
		for _, o := range of {
			all = r.add(all, r.join(o, name))
		}
	case "__self__":
		if slices.ContainsFunc(of, func(o string) bool { return builtins()[o] }) {
			return []string{"builtins"}
		}
	}
	return all
}

// isDictionary tells whether a name is that of a dictionary of names.
func isDictionary(name string) bool {
	return name == "globals()" || name == "sys.modules" || strings.HasSuffix(name, ".__dict__")
}

// closed is what a call or an index stands for, where its brackets close.
func (r *reader) closed(c *call) link {
	l := link{first: c.first, at: c.at, told: true}
	if r.Is(c.open, "[") {
		r.tell(&c.link, false)
		for _, name := range c.names {
			if isDictionary(name) || name == "builtins" {
				l.names = r.add(l.names, r.item(c, name, r.constant(r.Tokens[c.open+1:r.Partner[c.open]]))...)
			}
		}
		return l
	}
	if len(c.names) > 0 {
		c.args = r.Args(c.open)
	}
	for _, name := range c.names {
		got, instead := r.result(c, name)
		if !c.told && !instead {
			r.uses([]string{name}, c.at, true)
		}
		l.names = r.add(l.names, got...)
	}
	return l
}
