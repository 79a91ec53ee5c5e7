package lex

import (
	"fmt"
	"strings"
	"testing"

	"github.com/llmsandbox/llmsandbox/internal/language"
)

var escapes = &Escapes{Letters: "n", Values: "\n"}

// tables are languages that have all that a table can say.
var tables = map[string]Table{
	"c": {Remark: "//", Block: true, Ends: "\n", Names: "$", Universal: true, Digits: "'", Quotes: `"`, Escapes: escapes, Operators: OperatorsOf("-> >>= >>")},
	"#": {
		Remark: "#", Ends: "\n\r", Joins: true, Plain: true, Quotes: `"'`, Long: strings.TrimSpace, Escapes: escapes,
		Operators: OperatorsOf("=="), Balanced: true,
	},
	".": {Remark: "#", Ends: "\n", Names: ".", Quotes: `"`, Lines: true, Escapes: escapes, Operators: OperatorsOf("<-")},
}

// show are tokens: names, numbers and operators as they are, strings as they are quoted, with "?" where they are not constant.
func show(tokens []Token) string {
	var list []string
	for _, t := range tokens {
		switch {
		case t.Kind == String && !t.Constant:
			list = append(list, fmt.Sprintf("?%q", t.Text))
		case t.Kind == String:
			list = append(list, fmt.Sprintf("%q", t.Text))
		default:
			list = append(list, t.Text)
		}
	}
	return strings.Join(list, " ")
}

func TestLexer(t *testing.T) {
	for _, c := range []struct{ table, code, want, problem string }{
		{"c", "\ufeffa // b\n/* c\n*/d", "a d", ""},
		{"c", "a /* b", "a", "a comment is not closed"},
		{"c", "a->b>>=c>>d>e", "a -> b >>= c >> d > e", ""},
		{"c", `"a\n\x41\u0042\103\"" "b\` + "\nc\"", `"a\nABC\"" "bc"`, ""},
		{"c", "\"a\nb", `?"a" b`, NotClosed},
		{"c", `\u0061b1 \u{0000000000063} $c \x`, `ab1 c $c \ x`, ""},
		{"c", "1'000.'0 0xe+1 1e+1 .5f 1.x", "1'000.'0 0xe + 1 1e+1 .5f 1.x", ""},
		{"#", "1.5.x 1.x 1. x 1..2", "1.5 . x 1 . x 1. x 1. .2", ""},
		{"c", "é 日本 a\xff", "é 日本 a \xff", ""},
		{"c", "(]", "( ]", ""},
		{"#", "a\\\nb # c\rd", "a b d", ""},
		{"#", "\"\"\" a\n\"b' \"\"\" 'c'", `"a\n\"b'" "c"`, ""},
		{"#", "1or 0x1for 2e1if 3else 1j", "1 or 0x1f or 2e1 if 3 else 1j", ""},
		{"#", "(a]", "( a ]", "a bracket is closed that was not opened"},
		{"#", "(a", "( a", "a bracket is not closed"},
		{"#", "\xff", "\xff", "a character in it means nothing"},
		{".", "a.b<-\"c\nd\" 1.", `a.b <- "c` + `\nd" 1.`, ""},
	} {
		table := tables[c.table]
		var l Lexer
		err := language.Metered(t.Context(), len(c.code), func(m *language.Meter) {
			l = Lexer{Cursor: Cursor{Code: c.code}, Facts: &Facts{Meter: m}, Table: &table}
			l.Run()
		})
		if got := show(l.Tokens); err != nil || got != c.want || l.Problem != c.problem {
			t.Errorf("%q: got %s, problem %q, %v, want %s, problem %q", c.code, got, l.Problem, err, c.want, c.problem)
		}
	}
}

func TestLiteral(t *testing.T) {
	for _, c := range []struct {
		quote             Quote
		code, want, value string
	}{
		{Quote{End: ")", Open: '('}, "a(b)c)d", `"a(b)c" d`, "a(b)c"},
		{Quote{End: "/", Class: true, Flags: true, Escapes: &Escapes{Verbatim: true}}, `[/]\//g d`, `"[/]\\/" d`, `[/]\/`},
		{Quote{End: "'", Escapes: &Escapes{Only: `'\`}}, `\n\'\\'d`, `"\\n'\\" d`, `\n'\`},
		{Quote{End: "'"}, `\'d`, `"\\" d`, `\`},
		{Quote{End: "'", Insert: "${", Parts: true}, "a${b('}')}c'd", `?"a" { b ( "}" ) } ?"c" d`, "a|c"},
		{Quote{End: "'", Insert: "{"}, "a{{{b}c'd", `?"a{c" { b } d`, "a{|c"},
		{Quote{End: "'", Insert: "#{"}, "a#b#@c'd", `?"a#b#@c" d`, "a#b#@c"},
		{Quote{End: "'", Dynamic: true, Quiet: true}, "a'd", `?"a" d`, ""},
		{Quote{Lines: true}, "a\n", `"a\n"`, "a\n"},
		{Quote{End: "'", Escapes: &Escapes{Unknown: true, Named: true}}, `\d\N{x y}'d`, `?"\\d" d`, `\d`},
		{Quote{End: "'", Escapes: &Escapes{Control: true, Bytes: true}}, `\C-a\cb\xff\u{41 42}'d`, `"\xffAB" d`, "\xffAB"},
		{Quote{End: "'", Escapes: &Escapes{Bytes: true}}, `\563\x73\x0073'd`, `"ss\x0073" d`, "ss\x0073"},
		{Quote{End: "'", Escapes: &Escapes{Bytes: true, Any: true}}, `\x0073'd`, `"s" d`, "s"},
		{Quote{End: "'", Escapes: &Escapes{}}, `\563'd`, `".3" d`, ".3"},
	} {
		var l Lexer
		table := tables["#"]
		err := language.Metered(t.Context(), len(c.code), func(m *language.Meter) {
			l = Lexer{Cursor: Cursor{Code: "'" + c.code}, Facts: &Facts{Meter: m}, Table: &table}
			l.Special = func(byte) bool {
				first := l.Pos == 0
				if first {
					l.Pos++
					l.Literal(0, c.quote)
				}
				return first
			}
			l.Run()
		})
		var values []string
		for _, s := range l.Strings {
			if s.Value != "}" {
				values = append(values, s.Value)
			}
		}
		if got, value := show(l.Tokens), strings.Join(values, "|"); err != nil || got != c.want || value != c.value || l.Problem != "" {
			t.Errorf("%q: got %s, values %q, problem %q, %v, want %s, values %q", c.code, got, value, l.Problem, err, c.want, c.value)
		}
	}
}
