package lex

// Brackets say which tokens belong together, so that no look at the code needs recursion.
type Brackets struct {
	// Partner is the other bracket's index, -1 where there is none or it is no bracket.
	Partner []int
	// Outer is the index of the bracket that a token lies in, -1 outside of all.
	Outer []int
}

// Pair finds the brackets of tokens. A bracket that closes another kind than is open closes
// those of its kind further out, when there is one.
func Pair(tokens []Token) Brackets {
	b := Brackets{make([]int, len(tokens)), make([]int, len(tokens))}
	var open []int
	var count [3]int
	for i, t := range tokens {
		b.Partner[i], b.Outer[i] = -1, -1
		if len(open) > 0 {
			b.Outer[i] = open[len(open)-1]
		}
		if t.Kind != Punct {
			continue
		}
		switch t.Text {
		case "(", "[", "{", "[[":
			open = append(open, i)
			count[kind(t.Text)]++
		case ")", "]", "}":
			for k := kind(t.Text); count[k] > 0; {
				last := open[len(open)-1]
				open = open[:len(open)-1]
				opened := kind(tokens[last].Text)
				count[opened]--
				if opened == k {
					b.Partner[i], b.Partner[last], b.Outer[i] = last, i, b.Outer[last]
					break
				}
			}
		}
	}
	return b
}

func kind(bracket string) int {
	switch bracket[0] {
	case '(', ')':
		return 0
	case '[', ']':
		return 1
	}
	return 2
}

// Skip is the index behind the token at i, and behind all of its brackets when it opens
// them.
func (b Brackets) Skip(i int) int {
	if b.Partner[i] > i {
		return b.Partner[i] + 1
	}
	return i + 1
}
