package bash

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"runtime"
	"unicode/utf8"

	"mvdan.cc/sh/v3/syntax"

	"github.com/llmsandbox/llmsandbox/internal/language"
	"github.com/llmsandbox/llmsandbox/internal/lex"
)

// scan reads a script. Its uses are the commands by their names without directories, those
// that other commands start ("sudo", "xargs", "find -exec") included, "/dev/tcp" for a
// redirection to there, and no options. Its imports are files that are sourced, or given
// to a shell. Code on a shell's standard input that is not in the script is computed code.
func scan(m *language.Meter, code []byte) language.Facts {
	n := names{variables: map[string]string{}}
	var facts lex.Facts
	for range 2 {
		facts = lex.Facts{Meter: m}
		n.sure = map[string]bool{}
		s := scanner{Facts: &facts, names: &n, budget: new(lex.BudgetOf(len(code)))}
		s.read(code)
		if n.known = true; !n.again {
			break
		}
	}
	return facts.Ordered()
}

// A scanner reads one piece of code: the script, or a string that is executed.
type scanner struct {
	*lex.Facts
	names *names
	// code is what the parser reads, with as many bytes as the original and what ends it.
	code []byte
	// base is where the text begins that the parser reads now.
	base int
	// budget bounds what is read besides the script: strings, and again what failed.
	budget *lex.Budget
	failed int
	fed    *feed
}

// end is put behind the code. What it says is the last statement that the parser tells, with
// all comments that came before it.
const end = "\n\n_=\n"

// read reads commands.
func (s *scanner) read(code []byte) {
	s.code = readable(code)
	if bytes.IndexByte(code, 0) >= 0 {
		s.unreadable("there is a zero byte in it")
	}
	at := 0
	if bytes.HasPrefix(code, []byte("\xef\xbb\xbf")) {
		at = 3
	}
	for at < len(code) {
		s.Step()
		at = s.lines(at)
	}
}

// odd stands for a byte that the parser takes for something else than Bash does: for Bash a
// carriage return is no white space, and what is not UTF-8 is text.
const odd = 1

// readable is a copy of code for the parser.
func readable(code []byte) []byte {
	text := append(make([]byte, 0, len(code)+len(end)), code...)
	valid := utf8.Valid(text)
	for i, c := range text {
		switch {
		case c == '\r':
			text[i] = odd
		case !valid && c >= utf8.RuneSelf:
			text[i] = odd
		}
	}
	return append(text, end...)
}

// nested reads code that is the value of the string at a place.
func (s *scanner) nested(at language.Span, value string) {
	if !s.budget.Take(len(value)) {
		s.Compute(at, language.ComputedCode)
		return
	}
	s.Nested(at, func() {
		inner := scanner{Facts: s.Facts, names: s.names, budget: s.budget}
		inner.read([]byte(value))
	})
}

// unreadable notes why code could not be read. Code in a string that cannot be read is
// computed code.
func (s *scanner) unreadable(reason string) {
	if s.Depth == 0 {
		s.MarkUnreadable(reason)
	} else {
		s.Compute(language.Span{}, language.ComputedCode)
	}
}

// lines reads from a place on, where a statement begins, and returns where to go on.
func (s *scanner) lines(at int) int {
	at = s.comments(at)
	s.base = at
	l := line{scanner: s, at: at, next: -1, in: source{meter: s.Meter, code: s.code[at:]}}
	// The parser may call this once more after it was told to stop.
	syntax.NewParser(syntax.KeepComments(true)).StmtsSeq(&l.in)(func(stmt *syntax.Stmt, err error) bool {
		if l.next < 0 {
			l.add(stmt, err)
		}
		return l.next < 0
	})
	if l.next < 0 {
		s.tell(l.stmts)
		s.unreadable("it ends within a command")
		return len(s.code)
	}
	return l.next
}

// A line is statements that are not told yet, since here-documents come behind the line that
// asks for them.
type line struct {
	*scanner
	in    source
	at    int // where the first of them begins
	stmts []*syntax.Stmt
	next  int // where to go on with another parser, or -1
}

// add adds a statement, and tells those before it if they are complete.
func (l *line) add(stmt *syntax.Stmt, err error) {
	l.Step()
	if err != nil {
		l.tell(l.stmts)
		l.next = l.recover(l.at, l.base+l.in.read, err)
		return
	}
	start := l.base + int(stmt.Pos().Offset())
	if n := len(l.stmts); n > 0 && l.ended(l.at, l.base+int(l.stmts[n-1].End().Offset()), start) {
		if i := l.continued(l.at, start, append(l.stmts, stmt)); i >= 0 {
			l.code[i] = ' '
			if l.budget.Take(l.base + l.in.read - l.at) {
				l.next = l.at
				return
			}
			l.unreadable("there are too many comments in it that end with a backslash")
		}
		l.tell(l.stmts)
		l.stmts, l.at, l.in.told = l.stmts[:0], start, l.in.read
	}
	if start >= len(l.code)-len(end) {
		l.next = start
		return
	}
	if len(l.stmts) == 0 {
		l.at = start
	}
	l.stmts = append(l.stmts, stmt)
}

// comments goes over white space and whole lines of comments where a statement may begin.
func (s *scanner) comments(at int) int {
	code := s.code[:len(s.code)-len(end)]
	for at < len(code) {
		s.Step()
		switch code[at] {
		case ' ', '\t', '\n':
			at++
		case '#':
			line, _, _ := bytes.Cut(code[at:], []byte("\n"))
			s.Comment(at, at+len(line))
			at += len(line)
		default:
			return at
		}
	}
	return at
}

// ended tells whether all here-documents that statements from one place on ask for are read
// where the next one begins: a line ends behind the last of them, or they ask for none.
func (s *scanner) ended(from, behind, next int) bool {
	for i := behind; i < next; i++ {
		s.Step()
		if s.code[i] == '\n' && s.code[i-1] != '\\' {
			return true
		}
	}
	return !bytes.Contains(s.code[from:next], []byte("<<"))
}

// continued finds the first comment that the parser has wrongly taken to be continued on the
// next line, because there is a backslash at its end, and returns the place of that, or -1.
func (s *scanner) continued(from, to int, stmts []*syntax.Stmt) int {
	text := s.code[from:to]
	if !bytes.Contains(text, []byte("\\\n")) || bytes.IndexByte(text, '#') < 0 {
		return -1
	}
	first := -1
	look := func(node syntax.Node) {
		if c, ok := node.(*syntax.Comment); ok && bytes.HasSuffix([]byte(c.Text), []byte("\\\n")) {
			at := s.base + int(c.Hash.Offset())
			at += bytes.IndexByte(s.code[at:], '\n') - 1
			if first < 0 || at < first {
				first = at
			}
		}
	}
	for _, stmt := range stmts[:len(stmts)-1] {
		s.walk(stmt, look)
	}
	for _, c := range stmts[len(stmts)-1].Comments {
		look(&c)
	}
	return first
}

// recover returns where to go on after an error. What the parser does not understand is not
// known, but what follows is looked at.
func (s *scanner) recover(from, read int, err error) int {
	reason, text := err.Error(), true
	switch e := err.(type) {
	case syntax.ParseError:
		reason = e.Text
	case syntax.LangError:
		reason = e.Feature
	default:
		text = false
	}
	s.unreadable(fmt.Sprintf("a command in it could not be read: %.80s", reason))
	const retries, price = 256, 4
	parts := "\n"
	if s.failed++; s.failed < retries {
		if parts = " \t\n;&|(){}`"; text && s.budget.Take(price*(read-from)) {
			read = from
		}
	}
	if i := bytes.IndexAny(s.code[read:], parts); i >= 0 {
		return read + i + 1
	}
	return len(s.code)
}

const (
	// maxFrames bounds how deep the stack is. The parser is recursive and would go as deep
	// as brackets are nested, until the program is killed.
	maxFrames = 2000
	// maxLine bounds what is read before statements are reported, and forgotten.
	maxLine = 256 << 10
	// piece is how much the parser gets at once. For each byte it may go some thirty
	// functions deeper before it asks for more.
	piece = 256
)

var (
	errDeep  = errors.New("there is too much in each other")
	errLong  = errors.New("it is too long")
	errSlash = errors.New("there are too many backslashes in a row")
)

// A source is what the parser reads from, and what ends it.
type source struct {
	meter *language.Meter
	code  []byte
	read  int // how much of the code the parser has
	told  int // how much it had when statements were told last
}

func (r *source) Read(buffer []byte) (int, error) {
	var frame [1]uintptr
	if runtime.Callers(maxFrames, frame[:]) > 0 {
		return 0, errDeep
	}
	if r.read-r.told > maxLine {
		return 0, errLong
	}
	rest := r.code[r.read:]
	if len(rest) == 0 {
		return 0, io.EOF
	}
	n := min(piece, len(rest), len(buffer))
	// The parser looks at what follows a backslash, but not at what it does not have yet.
	for rest[n-1] == '\\' {
		r.meter.Step()
		if n == len(buffer) {
			return 0, errSlash
		}
		n++
	}
	r.meter.Take(n)
	r.read += copy(buffer, rest[:n])
	return n, nil
}
