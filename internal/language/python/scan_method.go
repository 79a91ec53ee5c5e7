package python

import (
	"encoding/base64"
	"encoding/hex"
	"strings"
	"unicode/utf8"

	"github.com/llmsandbox/llmsandbox/internal/language"
)

// method is what a method of a constant or of a dictionary of names returns.
func (s *scanner) method(m meaning, a *arguments, next bool) meaning {
	of := m.list[0]
	if m.text == "getattr" && of.kind == named {
		return s.get(of, a.get(0, "name"), next)
	}
	switch of.kind {
	case space:
		switch m.text {
		case "get", "pop", "setdefault", "__getitem__":
			return s.get(of, a.get(0, ""), next)
		}
	case text:
		return s.textMethod(of, m.text, a)
	case list:
		if m.text == "pop" || m.text == "__getitem__" {
			return elements(of)
		}
	}
	return meaning{}
}

func (s *scanner) textMethod(of meaning, name string, a *arguments) meaning {
	switch name {
	case "join":
		return s.joined(of, a.get(0, ""))
	case "format":
		if len(a.named) == 0 && a.count <= len(a.list) {
			return s.filled(of, "{}", a.list[:a.count])
		}
	case "replace":
		if from, to := a.get(0, ""), a.get(1, ""); a.count == 2 && from.kind == text && to.kind == text && from.text != "" &&
			len(of.text)+strings.Count(of.text, from.text)*len(to.text) <= maxFold {
			return s.folded(of.at, strings.ReplaceAll(of.text, from.text, to.text))
		}
	case "lower", "casefold":
		return s.folded(of.at, strings.ToLower(of.text))
	case "upper":
		return s.folded(of.at, strings.ToUpper(of.text))
	case "strip", "lstrip", "rstrip":
		if a.count == 0 {
			return s.folded(of.at, strings.TrimSpace(of.text))
		}
	case "decode", "encode":
		if c := a.get(0, "encoding"); c.kind == unknown && a.count == 0 || c.kind == text && plain(c.text) {
			return of
		}
	}
	return meaning{at: of.at}
}

func (s *scanner) joined(by, of meaning) meaning {
	if of.kind == text {
		l := make([]string, 0, len(of.text))
		if len(of.text) > maxElements {
			return meaning{at: by.at}
		}
		for _, r := range of.text {
			l = append(l, string(r))
		}
		return s.folded(by.at, strings.Join(l, by.text))
	}
	if of.kind != list {
		return meaning{at: by.at}
	}
	var b strings.Builder
	for i, e := range of.list {
		if e.kind != text || b.Len() > maxFold {
			return meaning{at: by.at}
		}
		if i > 0 {
			b.WriteString(by.text)
		}
		b.WriteString(e.text)
	}
	return s.folded(by.at, b.String())
}

// constant is what a function of constants returns.
func (s *scanner) constant(name string, a *arguments) meaning {
	arg := a.get(0, "")
	switch name {
	case "chr":
		if arg.kind == number && arg.number >= 0 && arg.number <= utf8.MaxRune {
			return s.folded(a.at, string(rune(arg.number)))
		}
	case "str", "ascii":
		if arg.kind == text {
			return arg
		}
	case "list", "tuple":
		if arg.kind == list || arg.kind == text {
			return arg
		}
	case "reversed":
		return s.item(arg, [3]meaning{2: {kind: number, number: -1}}, 2)
	case "map":
		return s.mapped(arg, a.get(1, ""), a.at)
	case "bytes", "bytearray":
		if arg.kind == text {
			return arg
		}
		return s.joined(meaning{kind: text, at: a.at}, s.mapped(meaning{kind: named, text: "chr"}, arg, a.at))
	case "bytes.fromhex", "bytearray.fromhex", "binascii.unhexlify", "binascii.a2b_hex":
		if arg.kind == text && len(arg.text) <= maxFold {
			if b, err := hex.DecodeString(strings.ReplaceAll(arg.text, " ", "")); err == nil {
				return s.folded(a.at, string(b))
			}
		}
	case "base64.b64decode", "base64.standard_b64decode", "base64.decodebytes", "binascii.a2b_base64":
		if arg.kind == text && len(arg.text) <= 2*maxFold {
			if b, err := base64.StdEncoding.DecodeString(strings.Join(strings.Fields(arg.text), "")); err == nil {
				return s.folded(a.at, string(b))
			}
		}
	}
	return meaning{at: a.at}
}

func (s *scanner) mapped(f, over meaning, at language.Span) meaning {
	if f.kind != named || f.text != "chr" || over.kind != list {
		return meaning{at: at}
	}
	l := make([]meaning, len(over.list))
	for i, e := range over.list {
		if e.kind != number || e.number < 0 || e.number > utf8.MaxRune {
			return meaning{at: at}
		}
		l[i] = meaning{kind: text, text: string(rune(e.number))}
	}
	return meaning{kind: list, list: l, at: at}
}
