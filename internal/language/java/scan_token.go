package java

import (
	"strconv"
	"strings"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/llmsandbox/llmsandbox/internal/language"
	"github.com/llmsandbox/llmsandbox/internal/lex"
)

var table = lex.Table{
	Remark: "//", Block: true, Ends: "\n\r", Names: "$", Quotes: `"'`, Long: block,
	Escapes:   &lex.Escapes{Letters: "ntsrbf", Values: "\n\t \r\b\f"},
	Operators: lex.OperatorsOf(":: -> == != <= && || ++ -- += ..."),
}

// split makes tokens of code.
func split(f *lex.Facts, code string) []lex.Token {
	l := lex.Lexer{Cursor: lex.Cursor{Code: code}, Facts: f, Table: &table, Ignored: ignored}
	l.Run()
	return l.Tokens
}

// ignored tells of characters that are left out of names.
func ignored(r rune) bool {
	return r >= 0 && r <= 8 || r >= 0xe && r <= 0x1b || r >= 0x7f && r <= 0x9f || unicode.Is(unicode.Cf, r)
}

// block is a text block without the white space that only lays it out.
func block(text string) string {
	lines := strings.Split(text, "\n")
	for i := range lines {
		lines[i] = strings.TrimSpace(lines[i])
	}
	return strings.Join(lines[1:], "\n")
}

// unescape replaces characters that are written by their numbers, which comes before all
// else in Java; nil where there are none.
func unescape(m *language.Meter, code string) *lex.Edited {
	if !strings.Contains(code, `\u`) {
		return nil
	}
	return lex.Edit(m, code, `\`, func(i int) (string, int) {
		if strings.HasPrefix(code[i:], `\\`) { // the second one begins nothing
			return `\\`, 2
		}
		r, n := escaped(code[i:])
		if low, more := escaped(code[i+n:]); utf16.IsSurrogate(r) && more > 0 {
			if both := utf16.DecodeRune(r, low); both != utf8.RuneError {
				r, n = both, n+more
			}
		}
		return string(r), n
	})
}

// escaped is the character whose number code begins with, and the length of that, 0 when there is none.
func escaped(code string) (rune, int) {
	rest := strings.TrimLeft(strings.TrimPrefix(code, `\`), "u")
	n := len(code) - len(rest) + 4
	if !strings.HasPrefix(code, `\u`) || len(rest) < 4 {
		return 0, 0
	}
	r, err := strconv.ParseUint(rest[:4], 16, 16)
	if err != nil {
		return 0, 0
	}
	return rune(r), n
}
