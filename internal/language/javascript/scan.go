package javascript

import (
	"slices"
	"strings"

	"github.com/llmsandbox/llmsandbox/internal/language"
	"github.com/llmsandbox/llmsandbox/internal/lex"
)

const (
	// maxName bounds a name: members beyond are left out, and what they are of is reported.
	maxName = 512
	// maxMembers bounds how many members what a variable stands for has.
	maxMembers = 5
	// maxPasses bounds how often names are looked at for what others of them stand for.
	maxPasses = 8
	// far is how many tokens are looked at for the end of a function that has no braces.
	far = 64
)

// scanCode implements [language.Scan]. What a name is given anywhere in a program counts
// everywhere: a name stands for all of that, and also for what Node.js has under it, but not where
// the program declares it itself in brackets around.
func scanCode(m *language.Meter, code []byte) language.Facts {
	facts := lex.Facts{Meter: m}
	budget := lex.BudgetOf(4 * len(code))
	read(&facts, string(code), lex.Names{}, &budget)
	return facts.Ordered()
}

// read adds what code says to facts. Names are what names stand for around it.
func read(facts *lex.Facts, code string, names lex.Names, budget *lex.Budget) {
	marked := strings.Contains(code, "<!--") || strings.Contains(code, "-->")
	l := lexer{script: marked && !usesModules([]byte(code))}
	l.Code, l.Facts = code, facts
	l.run()
	r := reader{
		Facts: facts, Stream: lex.NewStream(l.Tokens), marks: l.marks, names: names, budget: budget,
		begin: make([]int, len(l.Tokens)), owned: map[string]*owned{}, declaring: map[int]declaration{},
		targets: map[int][]int{}, callees: map[int]value{}, firsts: map[int][]string{},
	}
	for _, d := range l.doubtful {
		r.nested(d.Value, d.Span)
	}
	r.declarations()
	// Names may be used before the code that tells what they stand for.
	for n := 0; r.changed || n == 0; n++ {
		r.Step()
		if n == maxPasses {
			r.Trouble("names in it stand for each other more often than is followed")
			break
		}
		r.changed = false
		r.pass()
	}
	r.tells = true
	r.pass()
}

// A reader tells what tokens say. A name is written as it is reported, with two exceptions: a module has
// a dot behind it, and the object of all that is there without an import is a dot.
type reader struct {
	*lex.Facts
	lex.Stream
	marks []mark
	// names are what variables stand for.
	names   lex.Names
	changed bool // they were added to
	budget  *lex.Budget
	// begin is the first token of the operand that ends at a token.
	begin []int
	owned map[string]*owned
	// declaring are the declarations that are read, by the bracket around.
	declaring map[int]declaration
	// tells is set when facts are to be added.
	tells bool
	// last is the operand that ends at token end, if it stands for something.
	last value
	end  int
	// targets are the names and the patterns that are assigned to, by the bracket around.
	targets map[int][]int
	// callees are what is called with a bracket or has a member taken by it, firsts what its first
	// argument stands for.
	callees map[int]value
	firsts  map[int][]string
	classes int // how many are around
}

// A value is what an operand stands for: one of names. It is written from start up to end; start
// is -1 where it is no name in the code.
type value struct {
	names      []string
	start, end int
}

func (r *reader) role(i int) role {
	return r.At(i).Role
}

// isMember tells whether the name at token i is that of something's member.
func (r *reader) isMember(i int) bool { return r.Is(i-1, ".") || r.Is(i-1, "?.") }

// isVariable tells whether a variable's name is at token i.
func (r *reader) isVariable(i int) bool { return r.At(i).Kind == lex.Name && !r.marks[i].plain }

// closes tells whether an expression cannot go on at token i, and ends whether it may be over.
func (r *reader) closes(i int) bool {
	t := r.At(i)
	return t.Kind == 0 || t.Kind == lex.Punct && strings.Contains(",;)]}", t.Text)
}

func (r *reader) ends(i int) bool { return r.closes(i) || r.Tokens[i].Line }

// nested reads code that is the value of the string at s.
func (r *reader) nested(code string, s language.Span) {
	if r.budget.Take(len(code)) {
		r.Nested(s, func() { read(r.Facts, code, r.names, r.budget) })
	} else {
		r.Compute(s, language.ComputedCode)
	}
}

// compute tells of what is computed.
func (r *reader) compute(s language.Span, kind language.ComputedKind) {
	if r.tells {
		r.Compute(s, kind)
	}
}

// use tells of each of names. That something has a constructor is of no interest.
func (r *reader) use(s language.Span, names []string, call bool) {
	for _, name := range names {
		switch {
		case !r.tells || name == "constructor" && !call:
		case name == ".":
			r.Use(s, "globalThis", call)
		default:
			r.Use(s, strings.TrimSuffix(name, "."), call)
		}
	}
}

// member is a member of what has a name; it is empty where that is not known.
func member(of, name string) string {
	loads := of == "module" || strings.HasPrefix(of, "module.") || of == "require.main" || of == "process.mainModule"
	switch {
	case name == "constructor" && !loads:
		return name
	case of == "" || of == "constructor" && name != "call" && name != "apply" && name != "bind":
		return ""
	case of == ".":
		return global(name)
	case strings.HasSuffix(of, ".") && name == "default", len(of)+len(name) > maxName:
		return of
	case strings.HasSuffix(of, "."):
		return of + name
	case of != "Reflect" && (name == "call" || name == "apply" || name == "bind"):
		return of
	}
	return of + "." + name
}

// members are the members of what has one of names.
func members(of []string, name string) (list []string) {
	if len(of) == 0 {
		of = []string{""}
	}
	for _, of := range of {
		if m := member(of, name); m != "" && !slices.Contains(list, m) {
			list = append(list, m)
		}
	}
	return list
}

// global is what a name stands for that a program does not declare.
func global(name string) string {
	if name == "globalThis" || name == "global" {
		return "."
	}
	return name
}

// sensitive tells of what a name stands for that its members are not to be taken by a computed name.
func sensitive(name string) bool {
	switch name {
	case ".", "process", "require", "module", "Reflect", "WebAssembly", "process.mainModule", "module.constructor":
		return true
	}
	return strings.HasSuffix(name, ".") && name[0] != '.'
}
