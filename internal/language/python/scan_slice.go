package python

import "strings"

// item is an element of a constant, or a slice of it.
func (s *scanner) item(of meaning, parts [3]meaning, colons int) meaning {
	length := len(of.list)
	var runes []rune
	if of.kind == text {
		if len(of.text) > maxFold || !s.folds.Take(len(of.text)) {
			return meaning{at: of.at}
		}
		runes = []rune(of.text)
		length = len(runes)
	}
	for _, p := range parts {
		if p.kind != number && (p.kind != unknown || p.at.End > 0) {
			if colons == 0 && of.kind == list {
				return elements(of)
			}
			return meaning{at: of.at}
		}
	}
	var at []int
	if colons == 0 {
		n := parts[0].number
		if n < 0 {
			n += length
		}
		if n < 0 || n >= length || parts[0].kind != number {
			return meaning{at: of.at}
		}
		if of.kind == list {
			return of.list[n]
		}
		at = []int{n}
	} else {
		at = slice(parts, length)
	}
	if of.kind == list {
		l := make([]meaning, 0, len(at))
		for _, i := range at {
			l = append(l, of.list[i])
		}
		return meaning{kind: list, list: l, at: of.at}
	}
	var b strings.Builder
	for _, i := range at {
		b.WriteRune(runes[i])
	}
	return s.folded(of.at, b.String())
}

// slice are the places that a slice takes out of so many.
func slice(parts [3]meaning, length int) (at []int) {
	step := 1
	if parts[2].kind == number {
		step = parts[2].number
	}
	if step == 0 {
		return nil
	}
	bound := func(m meaning, none, low, high int) int {
		if m.kind != number {
			return none
		}
		n := m.number
		if n < 0 {
			n += length
		}
		return min(max(n, low), high)
	}
	if step > 0 {
		for i := bound(parts[0], 0, 0, length); i < bound(parts[1], length, 0, length); i += step {
			at = append(at, i)
		}
		return at
	}
	for i := bound(parts[0], length-1, -1, length-1); i > bound(parts[1], -1, -1, length-1); i += step {
		at = append(at, i)
	}
	return at
}
