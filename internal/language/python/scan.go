package python

import (
	"bytes"

	"github.com/llmsandbox/llmsandbox/internal/language"
	"github.com/llmsandbox/llmsandbox/internal/lex"
)

const (
	// maxNesting bounds brackets in brackets; Python itself refuses 200.
	maxNesting = 250
	// maxPasses bounds how often names are looked at before facts are told: a name may
	// stand for one that is only bound further down.
	maxPasses = 3
)

// scan reads a program by its tokens. It goes over them at least twice: first to learn
// what each name is bound to, then to tell facts. Where a name is bound to several things,
// it counts as the one that is not Python's own, wherever it is used.
//
// Four things are decided here, since the language leaves them open. A name that nothing
// in the program binds is told as it is written: an earlier cell may have bound it.
// Members that lead from any object to its class, its globals or its frame ("__class__",
// "__subclasses__", "__globals__") are uses by their bare name, whatever they are members
// of. A module that others hold as a member of theirs ("logging.os") counts as imported.
// And a function that runs code, imports or gets members by name (exec, __import__,
// getattr), when it is not called but handed on, is a computed one.
func scan(m *language.Meter, code []byte) language.Facts {
	s := &scanner{facts: lex.Facts{Meter: m}, scopes: map[int]*scope{}, nested: map[string]*nested{}, again: lex.BudgetOf(8 * len(code)), folds: lex.BudgetOf(len(code))}
	if bytes.HasPrefix(code, []byte("\xff\xfe")) || bytes.HasPrefix(code, []byte("\xfe\xff")) {
		s.facts.Trouble("it is not written in UTF-8")
		s.facts.Compute(language.Span{End: len(code)}, language.ComputedCode)
		return s.facts.Ordered()
	}
	source := string(code)
	l := lexer{src: source, facts: &s.facts}
	if bytes.HasPrefix(code, []byte("\xef\xbb\xbf")) {
		l.pos = 3
	}
	l.cookie()
	s.toks = l.tokens(false)
	if i := bytes.IndexByte(code, 0); i >= 0 {
		s.facts.Trouble("it has a NUL byte, which versions of Python read differently")
	}
	s.source = source
	s.module = &scope{kind: moduleScope, names: map[string]*binding{}}
	for s.pass = 1; s.pass <= maxPasses; s.pass++ {
		s.derived = 0
		s.run()
		if s.derived == 0 {
			break
		}
	}
	s.pass++
	s.emit = true
	s.run()
	return s.facts.Ordered()
}

// run goes over all tokens once.
func (s *scanner) run() {
	s.i, s.without, s.scope, s.floor = 0, 0, s.module, s.module
	s.block()
}

// A scanner is one scan.
type scanner struct {
	facts   lex.Facts // strings and comments when tokens are made, all else in the last pass
	source  string
	toks    []token
	i       int
	emit    bool
	pass    int // from 1
	derived int // names bound in this pass to what others stand for
	depth   int

	module, scope *scope
	floor         *scope // the one that the code being read cannot leave
	scopes        map[int]*scope
	base          int      // what tells positions in nested code from those of others
	conditional   bool     // the statement may not be executed
	held          bool     // there are bindings of members, such as self.run
	rebinds       bool     // the program may bind names by other means than statements
	header        bool     // what is read is the head of a compound statement
	without       int      // the place up to which no assignment's sign comes
	stars         []string // modules that are known to bring names, and the last one
	nested        map[string]*nested
	again, folds  lex.Budget // bytes of nested code, and of constants put together, yet to come
}
