package golang

import (
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/llmsandbox/llmsandbox/internal/lex"
)

// imports finds them; a cell may have them anywhere.
func (s *reader) imports() {
	for i, t := range s.tokens {
		if t.Kind != lex.Punct || t.Text != "import" {
			continue
		}
		i++
		if !s.is(i, "(") {
			s.spec(i)
			continue
		}
		for i++; i < len(s.tokens) && !s.is(i, ")") && !s.is(i, "import"); i++ {
			s.Step()
			i = s.spec(i)
		}
	}
}

// spec reads one import at i, and returns where it ends.
func (s *reader) spec(i int) int {
	name := ""
	if s.kind(i) == lex.Name || s.is(i, ".") {
		name = s.tokens[i].Text
		i++
	}
	if s.kind(i) != lex.String {
		return i
	}
	t := s.tokens[i]
	s.Import(t.Span, t.Text)
	switch name {
	case "":
		for _, name := range defaultNames(t.Text) {
			if _, taken := s.packages[name]; !taken {
				s.packages[name] = t.Text
			}
		}
	case ".":
		if slices.Contains(s.dotted, t.Text) {
			break
		}
		if s.dotted = append(s.dotted, t.Text); len(s.dotted) > maxDotted {
			s.dotted = s.dotted[:maxDotted]
			s.Trouble("it imports the names of more packages than are looked at")
		}
	default:
		s.packages[name] = t.Text
	}
	return i
}

// maxDotted is how many packages a bare name may be of.
const maxDotted = 8

// defaultNames are what a package may be called that is imported without a name: the last
// element of its path, mostly.
func defaultNames(of string) []string {
	base := path.Base(of)
	names := []string{base}
	if isVersion(base) {
		base = path.Base(path.Dir(of))
		names = append(names, base)
	}
	if before, version, ok := strings.Cut(base, "."); ok && isVersion(version) {
		base = before
		names = append(names, base)
	}
	short := strings.TrimSuffix(strings.TrimSuffix(strings.TrimPrefix(base, "go-"), "-go"), ".go")
	return append(names, short, strings.ReplaceAll(base, "-", ""), strings.ReplaceAll(base, "-", "_"))
}

func isVersion(s string) bool {
	if len(s) < 2 || s[0] != 'v' {
		return false
	}
	_, err := strconv.Atoi(s[1:])
	return err == nil
}
