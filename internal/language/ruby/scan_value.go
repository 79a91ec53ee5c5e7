package ruby

import (
	"strings"

	"github.com/llmsandbox/llmsandbox/internal/lex"
)

// A kind is what is known of a value.
type kind uint8

const (
	unknown  kind = iota
	isText        // the string or symbol text
	isName        // what has the name text: a class, a module, an object
	isMethod      // the method of that name, not called yet
	isSelf        // the object whose methods need no receiver
	isList        // one of texts
)

// A value is what an expression stands for, as far as it is known.
type value struct {
	kind  kind
	text  string
	texts []string
}

// variable is the value of a variable or a constant.
func (s *scan) variable(v *binding) value {
	switch v.state {
	case 1:
		return value{}
	case 0:
		v.state = 1
		v.value = s.settle(v)
		v.state = 2
	}
	return v.value
}

// settle finds a variable's value: what can run code or bring in a library goes first.
func (s *scan) settle(v *binding) value {
	if v.list > 0 {
		if at := v.list - 1; s.tokens[at].role == words {
			return s.text(at, false)
		} else {
			return s.list(at)
		}
	}
	var best value
	for _, at := range v.sources {
		got, _ := s.expression(at)
		if got.kind == isText && (v.open || len(v.sources) > 1) || got.kind == isList && v.open {
			continue
		}
		if best.kind == unknown || got.kind == isMethod || got.kind == isName && (got.text == "Kernel" || best.kind == isText) {
			best = got
		}
	}
	return best
}

// expression is the value of the expression at token i, and the token behind.
func (s *scan) expression(i int) (value, int) {
	s.facts.Step()
	if s.depth++; s.depth > maxDepth {
		s.depth--
		return value{}, i + 1
	}
	defer func() { s.depth-- }()
	for s.at(i).Is("&") || s.at(i).Is("*") {
		s.facts.Step()
		i++
	}
	v, i := s.chain(i, false)
	for i < len(s.tokens) {
		s.facts.Step()
		t := &s.tokens[i]
		switch {
		case t.Kind == lex.String && v.kind == isText && t.role != symbol && s.tokens[i-1].Kind == lex.String, t.Is("+"):
			if t.Is("+") {
				i++
			}
			var next value
			next, i = s.chain(i, false)
			if v.kind != isText || next.kind != isText || len(v.text)+len(next.text) > maxText {
				v = value{}
			} else {
				v.text += next.text
			}
		case t.Is("||") || t.Is("or") || t.Is("=") || t.Is("||="):
			next, end := s.expression(i + 1)
			if v.kind == unknown || t.Is("=") || next.kind == isMethod {
				v = next
			}
			return v, end
		case t.Is("?"):
			yes, end := s.expression(i + 1)
			if !s.at(end).Is(":") {
				return value{}, end
			}
			no, end := s.expression(end + 1)
			if yes.kind == unknown || yes.kind == isText || no.kind == isMethod {
				yes = no
			}
			if yes.kind == isText {
				yes = value{}
			}
			return yes, end
		case t.Kind == lex.Punct && !t.Is(")") && !t.Is("]") && !t.Is("}") && !t.Is(",") && !t.Is(";") && !t.Is("=>") && !t.Is(":") && !t.Is("{"):
			return value{}, i
		default:
			return v, i
		}
	}
	return v, i
}

// literal is the value of a string with insertions, if all of them are texts.
func (s *scan) literal(i int) value {
	end := min(s.tokens[i].pair, len(s.tokens)-1)
	if r := s.tokens[i].role; end < i || r == command || r == regex || r == words {
		return value{}
	}
	var b strings.Builder
	for at := i; at <= end; {
		s.facts.Step()
		t := &s.tokens[at]
		if t.Kind == lex.String {
			b.WriteString(t.Text)
			at++
			continue
		}
		v, _ := s.expression(at + 1)
		if t.role != insertion || t.pair < at || v.kind != isText || b.Len() > maxText {
			return value{}
		}
		b.WriteString(v.text)
		at = t.pair + 1
	}
	return value{kind: isText, text: b.String()}
}

// list is the value of the brackets at token i, if they hold texts.
func (s *scan) list(i int) value {
	var texts []string
	for at, n := i+1, 0; at >= 0 && at < s.tokens[i].pair && n < 64; n++ {
		s.facts.Step()
		v, _ := s.expression(at)
		if v.kind != isText {
			return value{}
		}
		texts = append(texts, v.text)
		at = s.behindComma(at)
	}
	return value{kind: isList, texts: texts}
}

// passed is what a method makes of a text or of a list, and whether it is known.
func (s *scan) passed(v value, name string, args []int) (value, bool) {
	switch name {
	case "itself", "freeze", "dup", "clone", "to_s", "to_str", "to_sym", "intern", "strip", "chomp", "b", "-@", "+@":
		if name == "strip" || name == "chomp" {
			v.text = strings.TrimSpace(v.text)
		}
		return v, true
	case "to_proc":
		return value{}, false
	case "join":
		if v.kind != isList {
			break
		}
		sep := value{kind: isText}
		if len(args) > 0 {
			sep = s.argument(args[0])
		}
		size := 0
		for _, text := range v.texts {
			size += len(text) + len(sep.text)
		}
		if sep.kind == isText && size <= maxText {
			return value{kind: isText, text: strings.Join(v.texts, sep.text)}, true
		}
	case "concat", "+":
		if v.kind == isText && len(args) == 1 {
			if next := s.argument(args[0]); next.kind == isText {
				return value{kind: isText, text: v.text + next.text}, true
			}
		}
	}
	return value{}, false
}
