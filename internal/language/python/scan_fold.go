package python

import (
	"strings"

	"github.com/llmsandbox/llmsandbox/internal/language"
)

// maxFold bounds a constant that is put together.
const maxFold = 1 << 14

// folded is a constant that is put together, as long as there is room for such.
func (s *scanner) folded(at language.Span, value string) meaning {
	if len(value) > maxFold || !s.folds.Take(len(value)) {
		return meaning{at: at}
	}
	return meaning{kind: text, text: value, at: at}
}

func (s *scanner) add(a, b meaning) meaning {
	switch {
	case a.kind == text && b.kind == text:
		if len(a.text)+len(b.text) > maxFold {
			return meaning{at: a.at}
		}
		return s.folded(a.at, a.text+b.text)
	case a.kind == number && b.kind == number:
		return meaning{kind: number, number: a.number + b.number, at: a.at}
	case a.kind == list && b.kind == list && len(a.list)+len(b.list) <= maxElements:
		return meaning{kind: list, list: append(a.list[:len(a.list):len(a.list)], b.list...)}
	}
	s.leak(a)
	s.leak(b)
	return meaning{at: a.at}
}

func subtract(a, b meaning) meaning {
	if a.kind == number && b.kind == number {
		return meaning{kind: number, number: a.number - b.number, at: a.at}
	}
	return meaning{}
}

func (s *scanner) times(a, b meaning) meaning {
	switch {
	case a.kind == text && b.kind == number && b.number >= 0 && b.number <= maxFold && len(a.text)*b.number <= maxFold:
		return s.folded(a.at, strings.Repeat(a.text, b.number))
	case a.kind == number && b.kind == number && a.number < 1<<20 && b.number < 1<<20 && a.number > -1<<20 && b.number > -1<<20:
		return meaning{kind: number, number: a.number * b.number, at: a.at}
	}
	return meaning{}
}

// formatted is a constant with constants in place of %s.
func (s *scanner) formatted(a, b meaning) meaning {
	if a.kind != text {
		return meaning{}
	}
	values := []meaning{b}
	if b.kind == list {
		values = b.list
	}
	return s.filled(a, "%s", values)
}

// filled puts values into the holes of a constant.
func (s *scanner) filled(a meaning, hole string, values []meaning) meaning {
	parts := strings.Split(a.text, hole)
	if len(parts) != len(values)+1 || strings.ContainsAny(strings.Join(parts, ""), hole[:1]) {
		return meaning{at: a.at}
	}
	var b strings.Builder
	for i, p := range parts {
		b.WriteString(p)
		if i < len(values) {
			if values[i].kind != text || b.Len() > maxFold {
				return meaning{at: a.at}
			}
			b.WriteString(values[i].text)
		}
	}
	return s.folded(a.at, b.String())
}
