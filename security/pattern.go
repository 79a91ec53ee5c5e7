package security

import (
	"bytes"
	"errors"
	"regexp"
	"regexp/syntax"
	"slices"
	"sync"
)

// A pattern is compiled when a code has what every match of it needs, which is seldom.
type pattern struct {
	*Pattern
	re func() *regexp.Regexp
	// needs are texts one of which is in every match; none: that is not known.
	needs []string
	// oneLine reports whether matches lie within a line and depend on that line alone.
	oneLine bool
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
	return pattern{p, compile, needs(tree), oneLine(tree)}, nil
}

// find finds all matches in a text: where that can be, only in lines that have what every
// match needs.
func (p pattern) find(text []byte) (found [][]int) {
	if !p.oneLine || len(p.needs) == 0 {
		return p.re().FindAllIndex(text, -1)
	}
	start := 0
	for line := range bytes.Lines(text) {
		if slices.ContainsFunc(p.needs, func(n string) bool { return bytes.Contains(line, []byte(n)) }) {
			for _, m := range p.re().FindAllIndex(line, -1) {
				found = append(found, []int{start + m[0], start + m[1]})
			}
		}
		start += len(line)
	}
	return found
}

// oneLine reports whether an expression matches no newline and no end of the text.
func oneLine(re *syntax.Regexp) bool {
	switch re.Op {
	case syntax.OpAnyChar, syntax.OpBeginText, syntax.OpEndText, syntax.OpBeginLine, syntax.OpEndLine:
		return false
	case syntax.OpLiteral:
		return !slices.Contains(re.Rune, '\n')
	case syntax.OpCharClass:
		for i := 0; i+1 < len(re.Rune); i += 2 {
			if re.Rune[i] <= '\n' && '\n' <= re.Rune[i+1] {
				return false
			}
		}
	}
	return !slices.ContainsFunc(re.Sub, func(sub *syntax.Regexp) bool { return !oneLine(sub) })
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
