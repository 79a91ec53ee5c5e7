package r

import (
	"slices"
	"strings"
	"sync"

	"github.com/llmsandbox/llmsandbox/internal/language"
	"github.com/llmsandbox/llmsandbox/internal/lex"
)

// An effect is what a function does with a name, a package or code that it is given.
type effect uint8

const (
	attaches effect = iota + 1 // loads the package at, which is written as a name unless with says otherwise
	loads                      // loads the package that the string at names
	loadsAll                   // loads the packages that all arguments name
	finds                      // finds what the string at names
	exports                    // finds what the string at names, in the package with
	calls                      // calls the function at, or that of this name, with the arguments with
	maps                       // calls the function at, or that of this name, with each of with
	runs                       // makes code of the string at
	parses                     // makes code of the string at, or of the file with
	sources                    // runs the file at
)

// computed is what is not known when such a function is used in a way that cannot be told.
func (e effect) computed() language.ComputedKind {
	switch e {
	case attaches, loads, loadsAll:
		return language.ComputedImport
	case runs, parses, sources:
		return language.ComputedCode
	case maps:
		return ""
	}
	return language.ComputedName
}

// A builtin is what functions have in common that have an effect. The formals are the names of their
// arguments up to the last that matters; at and with are two of them, or with is -1.
type builtin struct {
	effect   effect
	formals  string
	at, with int
	names    string
}

var builtins = byName([]builtin{
	{attaches, "package help pos lib.loc character.only", 0, 4, "library"},
	{attaches, "package lib.loc quietly warn.conflicts character.only", 0, 4, "require"},
	{attaches, "pkg name", 0, -1, ":: :::"}, // which are called where they are quoted
	{loads, "package", 0, -1, "requireNamespace loadNamespace"},
	{loads, "ns", 0, -1, "attachNamespace asNamespace"},
	{loads, "name", 0, -1, "getNamespace"},
	{loadsAll, "", 0, -1, "pacman::p_load p_load"},

	{finds, "x", 0, -1, "get get0 mget getAnywhere as.name as.symbol rlang::sym"},
	{finds, "name", 0, -1, "getFunction call .Primitive"},
	{exports, "ns name", 1, 0, "getExportedValue"},
	{exports, "x ns", 0, 1, "getFromNamespace"},

	{calls, "what args", 0, 1, "do.call"},
	{calls, "FUN", 0, -1, "match.fun"},
	{calls, ".fn arg", 0, 1, "rlang::exec rlang::call2"},
	{maps, "X FUN", 1, 0, "lapply sapply vapply"},
	{maps, "env FUN", 1, 0, "eapply"},
	{maps, "object f", 1, 0, "rapply"},
	{maps, "X INDEX FUN", 2, 0, "tapply"},
	{maps, "X MARGIN FUN", 2, 0, "apply"},
	{maps, "X Y FUN", 2, 0, "outer"},
	{maps, "x by FUN", 2, 0, "aggregate"},
	{maps, "data INDICES FUN", 2, 0, "by"},
	{maps, "x MARGIN STATS FUN", 3, 0, "sweep"},
	{maps, "FUN x", 0, 1, "mapply"},
	{maps, "f x", 0, 1, "Map Filter Reduce Position Find"},

	{parses, "file n text", 2, 0, "parse"},
	{runs, "s", 0, -1, "str2lang"},
	{runs, "text", 0, -1, "str2expression"},
	{runs, "x", 0, -1, "rlang::parse_expr rlang::parse_exprs rlang::parse_quo"},
	{sources, "file", 0, -1, "source sys.source"},
})

// byName returns the builtins by their names, and makes that map when it is first asked for.
func byName(list []builtin) func() map[string]builtin {
	return sync.OnceValue(func() map[string]builtin {
		all := map[string]builtin{}
		for _, b := range list {
			for name := range strings.FieldsSeq(b.names) {
				all[name] = b
			}
		}
		return all
	})
}

// attached are the packages whose names are there without them being named.
var attached = lex.Words("base stats graphics grDevices utils datasets methods")

// environments are functions that return one: what is taken out of it by $ is a function's name.
var environments = lex.Words("baseenv globalenv environment topenv parent.env parent.frame as.environment asNamespace getNamespace " +
	"loadNamespace sys.frame pos.to.env")

// rebinding are functions behind which a name need not be what the program defined last, besides
// those that return an environment.
var rebinding = lex.Words("rm remove detach eval evalq eval.parent local with sys.function")

// makers are functions that return functions.
var makers = lex.Words("Negate Vectorize ecdf approxfun splinefun stepfun colorRampPalette match.fun getFunction get " +
	"purrr::partial purrr::compose")

// scan reads an R program by its tokens. Names of packages that R attaches by itself are bare
// ("system"), those of others are written with theirs where the program does so ("httr::GET").
func scan(m *language.Meter, code []byte) language.Facts {
	facts := lex.Facts{Meter: m}
	read(&facts, string(code), known{lex.Names{}, map[string]string{".GlobalEnv": "", ".BaseNamespaceEnv": ""}, map[string]bool{}})
	return facts.Ordered()
}

// read reads a program, or code in one, which shares what is known of its names.
func read(facts *lex.Facts, code string, names known) {
	s := reader{Facts: facts, known: names, Stream: lex.NewStream(tokens(facts, code))}
	s.followed, s.quoted = map[int]bool{}, map[int]bool{}
	s.functions, s.values = map[string]int{}, map[string]int{}
	for i := range s.Tokens {
		s.collect(i)
	}
	for i := range s.Tokens {
		s.token(i)
	}
}

// token tells what the token at i brings in or uses.
func (s *reader) token(i int) {
	s.define(i)
	t := &s.Tokens[i]
	if s.is(i, "[") && s.is(i+1, "[") {
		s.element(i)
	}
	if !s.named(i) || s.quoted[i] || s.is(i-1, "::") || s.is(i-1, ":::") {
		return
	}
	name, end := s.written(i)
	if before := s.previous(i - 1); s.is(before, "$") || s.is(before, "@") {
		if pkg, ok := s.environment(s.previous(before - 1)); ok {
			s.use(i, i+1, qualify(pkg, t.Text))
		}
		return
	}
	switch {
	case end > i+1:
		if t.Text != "base" {
			s.Import(t.Span, t.Text)
		}
		s.use(i, end, name)
	case t.Kind == lex.String && !s.is(end, "(") || s.defined(i):
	default:
		for _, meaning := range s.meanings(t.Span, name) {
			if !s.own(meaning, i, s.is(end, "(")) {
				s.use(i, end, meaning)
			}
		}
	}
}

// use tells of the name that is written from i up to end.
func (s *reader) use(i, end int, name string) {
	span, called := s.span(argument{from: i, to: end}), s.is(end, "(")
	s.Use(span, name, called)
	b, ok := builtins()[name]
	switch {
	case !ok:
	case called && s.Partner[end] > 0:
		s.call(b, i, end)
	case !s.followed[i] && b.effect != maps:
		s.Compute(span, b.effect.computed())
	}
}

// call tells what the call of a builtin does, whose name is at i and whose bracket at open.
func (s *reader) call(b builtin, i, open int) {
	if b.effect == loadsAll {
		s.attachAll(open)
		return
	}
	args := s.match(i, open, strings.Fields(b.formals))
	at, with := args[b.at], argument{}
	if b.with >= 0 {
		with = args[b.with]
	}
	if at.none() && b.effect != parses {
		return
	}
	switch b.effect {
	case attaches:
		s.attach(at, with)
	case loads:
		s.load(at)
	case finds:
		s.find(at, "")
	case exports:
		s.find(at, s.load(with))
	case calls:
		s.apply(at, with, false)
	case maps:
		if slices.ContainsFunc(s.args(open), func(a argument) bool { return a.name != "" && strings.HasPrefix("package", a.name) }) {
			with = argument{} // which is another parameter then
		}
		s.apply(at, with, true)
	case runs:
		s.run(at)
	case parses:
		if !at.none() {
			s.run(at)
		} else if !with.none() {
			s.Compute(s.span(with), language.ComputedCode)
		}
	case sources:
		if file, ok := s.literals(at); !ok || strings.Contains(file[0], "://") {
			s.Compute(s.span(at), language.ComputedCode)
		}
	}
}

// attach loads the package that an argument is the name of, as it stands, unless another one says
// that it may be an expression.
func (s *reader) attach(a, byString argument) {
	if a.single() && s.named(a.from) && (byString.none() || byString.single() && s.is(byString.from, "FALSE")) {
		s.Import(s.span(a), s.Tokens[a.from].Text)
		s.quoted[a.from] = true
		return
	}
	s.load(a)
}

// attachAll loads the packages that all arguments name, and those in the vector char.
func (s *reader) attachAll(open int) {
	for _, a := range s.args(open) {
		switch {
		case a.none():
		case a.name == "":
			s.attach(a, argument{})
		case a.name[0] == 'c': // or tells that the others may be expressions
			s.load(a)
		}
	}
}

// load loads the packages that an argument names, and returns the last.
func (s *reader) load(a argument) (pkg string) {
	if a.none() {
		return ""
	}
	list, ok := s.literals(a)
	if !ok {
		s.Compute(s.span(a), language.ComputedImport)
	}
	for _, pkg = range list {
		s.Import(s.span(a), pkg)
	}
	return pkg
}

// find uses what an argument names, of a package or of any.
func (s *reader) find(a argument, pkg string) {
	list, ok := s.literals(a)
	if !ok {
		s.Compute(s.span(a), language.ComputedName)
	}
	for _, name := range list {
		s.pass(a, argument{}, qualify(pkg, name), true)
	}
}

// apply calls a function, or the one that a string names, with what is in another argument.
func (s *reader) apply(function, with argument, maps bool) {
	list, literal := s.literals(function)
	if !literal && !s.function(function, maps) {
		s.Compute(s.span(function), language.ComputedName)
	}
	if !literal && s.named(function.from) {
		name, _ := s.written(function.from)
		list = []string{name}
	}
	for _, name := range list {
		s.pass(function, with, name, literal)
	}
}

// pass sees a function that is passed to another, by its name in a string or as it is, which is to
// call it with what may be the names of packages.
func (s *reader) pass(a, with argument, name string, literal bool) {
	packages, ok := s.literals(with)
	for _, meaning := range s.meanings(s.span(a), name) {
		if literal {
			s.Use(s.span(a), meaning, true)
		}
		effect := builtins()[meaning].effect
		if effect.computed() == language.ComputedImport && ok {
			for _, pkg := range packages {
				s.Import(s.span(with), pkg)
			}
			s.followed[a.from] = true
		} else if literal && effect != 0 && effect != maps {
			s.Compute(s.span(a), effect.computed())
		}
	}
}

// run reads the code in a string.
func (s *reader) run(a argument) {
	list, ok := s.literals(a)
	if !ok {
		s.Compute(s.span(a), language.ComputedCode)
		return
	}
	s.Nested(s.span(a), func() { read(s.Facts, strings.Join(list, "\n"), s.known) })
}

// element sees functions taken out of an environment by [["name"]], which begins at i.
func (s *reader) element(i int) {
	if pkg, ok := s.environment(s.previous(i - 1)); ok && s.Partner[i+1] > 0 {
		if a := (argument{from: s.next(i + 2), to: s.Partner[i+1]}); !a.none() {
			s.find(a, pkg)
		}
	}
}

// An argument of a call: the tokens of its value, and its name when it has one. None is where
// there is no such argument.
type argument struct {
	from, to int
	name     string
}

func (a argument) none() bool   { return a.from >= a.to }
func (a argument) single() bool { return a.to == a.from+1 }

// span is where an argument is written.
func (s *reader) span(a argument) language.Span {
	return s.SpanOf(a.from, a.to)
}

// args are the arguments of the call whose bracket is at open.
func (s *reader) args(open int) (list []argument) {
	for _, bounds := range s.Args(open) {
		a := argument{from: s.next(bounds[0]), to: s.previous(bounds[1]-1) + 1}
		if equals := s.next(a.from + 1); equals < a.to && s.named(a.from) && s.is(equals, "=") {
			a.name, a.from = s.Tokens[a.from].Text, s.next(equals+1)
		}
		list = append(list, a)
	}
	return list
}

// match finds the arguments of the formal names, as R does: by the whole name, by a name that is
// shortened, or by their order. What is piped into the call of the name at i comes first, or is
// where "." or "_" stand for it.
func (s *reader) match(i, open int, formals []string) []argument {
	found, piped := make([]argument, len(formals)), s.piped(i)
	var rest []argument
	for _, a := range s.args(open) {
		if !piped.none() && a.single() && s.is(a.from, ".", "_") {
			piped.name = a.name
			a, piped = piped, argument{}
		}
		f := slices.Index(formals, a.name)
		if f < 0 && a.name != "" {
			f = slices.IndexFunc(formals, func(formal string) bool { return strings.HasPrefix(formal, a.name) })
		}
		switch {
		case f >= 0:
			found[f] = a
		case a.name == "":
			rest = append(rest, a)
		}
	}
	if !piped.none() {
		rest = append([]argument{piped}, rest...)
	}
	for f := range found {
		if found[f].none() && len(rest) > 0 {
			found[f], rest = rest[0], rest[1:]
		}
	}
	return found
}

// piped is what is piped into the call of the name at i: a string, or else the pipe stands for it.
func (s *reader) piped(i int) argument {
	pipe := s.previous(i - 1)
	if !s.is(pipe, "|>", "%>%", "%T>%", "%<>%") {
		return argument{}
	}
	at := s.previous(pipe - 1)
	if s.Kind(at) == lex.String && (at == 0 || s.ends(at-1) || s.is(at-1, "{", "(", "=", "<-", "<<-")) {
		return argument{from: at, to: at + 1}
	}
	return argument{from: pipe, to: pipe + 1}
}

// literals are the strings that an argument is: one, or a vector or list that is written there.
func (s *reader) literals(a argument) ([]string, bool) {
	if a.single() && s.Kind(a.from) == lex.String && s.Tokens[a.from].Constant {
		return []string{s.Tokens[a.from].Text}, true
	}
	if a.none() || !s.is(a.from, "c", "list") || !s.is(a.from+1, "(") || s.Partner[a.from+1] != a.to-1 {
		return nil, false
	}
	if _, own := s.assigned[s.Tokens[a.from].Text]; own {
		return nil, false
	}
	var list []string
	for _, e := range s.args(a.from + 1) {
		if !e.single() || s.Kind(e.from) != lex.String || !s.Tokens[e.from].Constant {
			return nil, false
		}
		list = append(list, s.Tokens[e.from].Text)
	}
	return list, len(list) > 0
}

// function says whether an argument is a function, itself or by its name. Its use is reported where
// it stands. With parameters, a parameter counts as one: functions are mostly passed there.
func (s *reader) function(a argument, parameters bool) bool {
	if s.maker(a.from) {
		return true
	}
	name, end := s.written(a.from)
	if !s.name(a.from) || end < a.to {
		return false
	}
	return end > a.from+1 || !slices.ContainsFunc(s.meanings(s.span(a), name), func(m string) bool {
		return s.assigned[m] || !parameters && s.values[m] > a.from
	})
}
