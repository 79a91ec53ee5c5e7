package security

import (
	"bytes"
	"cmp"
	"errors"
	"regexp"
	"regexp/syntax"
	"slices"
	"sync"

	"github.com/llmsandbox/llmsandbox/internal/language"
)

// A pattern is compiled when a code has what every match of it needs, which is seldom.
type pattern struct {
	*Pattern
	re func() *regexp.Regexp
	// needs are texts one of which is in every match; none: that is not known.
	needs []string
}

func newPattern(p *Pattern) (pattern, error) {
	none := pattern{}
	tree, err := syntax.Parse(p.Pattern, syntax.Perl)
	if err != nil {
		return none, err
	}
	tree = tree.Simplify()
	if shortest(tree) == 0 {
		return none, errors.New("it matches nothing at all, and so everywhere")
	}
	prog, err := syntax.Compile(tree)
	if err != nil {
		return none, err
	}
	if len(prog.Inst) > maxInstruction {
		return none, errors.New("it is too large: write shorter repetitions")
	}
	compile := sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(p.Pattern) }) // it was parsed and compiled above
	return pattern{p, compile, needs(tree)}, nil
}

// shortest is how many characters a match has at least.
func shortest(re *syntax.Regexp) int {
	n := 0
	switch re.Op {
	case syntax.OpLiteral:
		return len(re.Rune)
	case syntax.OpCharClass, syntax.OpAnyChar, syntax.OpAnyCharNotNL:
		return 1
	case syntax.OpCapture, syntax.OpPlus:
		return shortest(re.Sub[0])
	case syntax.OpRepeat:
		return re.Min * shortest(re.Sub[0])
	case syntax.OpConcat:
		for _, sub := range re.Sub {
			n += shortest(sub)
		}
	case syntax.OpAlternate:
		n = shortest(re.Sub[0])
		for _, sub := range re.Sub[1:] {
			n = min(n, shortest(sub))
		}
	}
	return n
}

// needs are texts one of which is in every match: of a sequence its most telling part.
func needs(re *syntax.Regexp) []string {
	switch re.Op {
	case syntax.OpLiteral:
		if re.Flags&syntax.FoldCase == 0 {
			return []string{string(re.Rune)}
		}
	case syntax.OpCapture, syntax.OpPlus:
		return needs(re.Sub[0])
	case syntax.OpConcat:
		var best []string
		for _, sub := range re.Sub {
			if n := needs(sub); telling(n) > telling(best) {
				best = n
			}
		}
		return best
	case syntax.OpAlternate:
		var all []string
		for _, sub := range re.Sub {
			n := needs(sub)
			if n == nil {
				return nil
			}
			all = append(all, n...)
		}
		return all
	}
	return nil
}

// telling is the length of the shortest of the texts.
func telling(texts []string) int {
	n := 0
	for i, t := range texts {
		if i == 0 || len(t) < n {
			n = len(t)
		}
	}
	return n
}

// texts are what patterns are matched on: the code with its comments blanked and its names
// resolved, names that have no place of their own in it, and the values of strings.
type texts struct {
	*language.Meter
	code   text
	hidden text
	// executed are strings whose value is run as code, and so counts as code.
	executed, strings []language.Literal
	// literals are all strings in the order of the code.
	literals []language.Literal
	original []byte
}

// A text is made of pieces of code, so that what matches has a place in it.
type text struct {
	bytes  []byte
	pieces []piece
}

// A piece says where the bytes from at on come from. A name stands for all of its span.
type piece struct {
	at   int
	from language.Span
	name bool
}

func (t *text) add(content string, from language.Span, name bool) {
	if content == "" {
		return
	}
	t.pieces = append(t.pieces, piece{len(t.bytes), from, name})
	t.bytes = append(t.bytes, content...)
}

func (t *text) pieceAt(at int) piece {
	i, found := slices.BinarySearchFunc(t.pieces, at, func(p piece, at int) int { return cmp.Compare(p.at, at) })
	if !found {
		i--
	}
	return t.pieces[i]
}

// span is the place in the code of a match that is not empty.
func (t *text) span(start, end int) language.Span {
	first, last := t.pieceAt(start), t.pieceAt(end-1)
	s := language.Span{Start: first.from.Start, End: last.from.End}
	if !first.name {
		s.Start += start - first.at
	}
	if !last.name {
		s.End = last.from.Start + end - last.at
	}
	return s
}

func newTexts(m *language.Meter, code []byte, facts language.Facts) *texts {
	t := &texts{Meter: m, original: code}
	for _, l := range facts.Strings {
		if inside(l.Span, code) {
			t.literals = append(t.literals, l)
		}
	}
	slices.SortStableFunc(t.literals, func(a, b language.Literal) int { return cmp.Compare(a.Start, b.Start) })
	shown, hidden := t.uses(facts.Uses)
	plain := slices.Clone(code)
	for _, c := range facts.Comments {
		if inside(c, code) {
			blank(plain[c.Start:c.End])
		}
	}
	at := 0
	for _, u := range shown {
		t.code.add(string(plain[at:u.Start]), language.Span{Start: at, End: u.Start}, false)
		t.code.add(u.Name, u.Span, true)
		at = u.End
	}
	t.code.add(string(plain[at:]), language.Span{Start: at, End: len(code)}, false)
	for _, u := range hidden {
		call := ""
		if u.Call {
			call = "()"
		}
		t.hidden.add(u.Name+call+"\n", u.Span, true)
	}
	t.sortStrings(facts)
	return t
}

func inside(s language.Span, code []byte) bool {
	return 0 <= s.Start && s.Start <= s.End && s.End <= len(code)
}

// blank takes text away and leaves its lines.
func blank(text []byte) {
	for i, b := range text {
		if b != '\n' {
			text[i] = ' '
		}
	}
}

// uses parts the names that replace what is written from those that share their place with
// other code: names in a string that is executed.
func (t *texts) uses(all []language.Use) (shown, hidden []language.Use) {
	sorted := slices.Clone(all)
	slices.SortStableFunc(sorted, func(a, b language.Use) int { return cmp.Compare(a.Start, b.Start) })
	end := 0
	for _, u := range sorted {
		switch {
		case !inside(u.Span, t.original):
		case u.Start < end || u.Start == u.End || t.isLiteral(u.Span):
			hidden = append(hidden, u)
		default:
			shown, end = append(shown, u), u.End
		}
	}
	return shown, hidden
}

func (t *texts) isLiteral(s language.Span) bool {
	i, found := slices.BinarySearchFunc(t.literals, s.Start, func(l language.Literal, at int) int { return cmp.Compare(l.Start, at) })
	for ; found && i < len(t.literals) && t.literals[i].Start == s.Start; i++ {
		if t.Step(); t.literals[i].Span == s {
			return true
		}
	}
	return false
}

// sortStrings separates strings from docstrings and from those that are executed, which are
// those that something is used in.
func (t *texts) sortStrings(facts language.Facts) {
	used := map[language.Span]bool{}
	for _, u := range facts.Uses {
		used[u.Span] = true
	}
	for _, i := range facts.Imports {
		used[i.Span] = true
	}
	for _, l := range t.literals {
		switch {
		case used[l.Span]:
			t.executed = append(t.executed, l)
			t.strings = append(t.strings, l)
		case !l.Doc:
			t.strings = append(t.strings, l)
		}
	}
}

// written is where a part of a string's value stands in the code: all of the string where
// that cannot be known.
func (t *texts) written(l language.Literal, part string) language.Span {
	t.Take(1 + (l.End - l.Start))
	if i := bytes.Index(t.original[l.Start:l.End], []byte(part)); i >= 0 {
		return language.Span{Start: l.Start + i, End: l.Start + i + len(part)}
	}
	return l.Span
}
