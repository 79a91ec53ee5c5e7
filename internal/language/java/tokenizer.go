package java

import "bytes"

// A tokenizer splits Java into names and single other characters, without comments,
// strings, characters and text blocks.
type tokenizer struct {
	code []byte
	at   int
}

// next returns the next token, or "" at the end.
func (t *tokenizer) next() string {
	for t.at < len(t.code) {
		rest := t.code[t.at:]
		switch c := rest[0]; {
		case bytes.HasPrefix(rest, []byte("//")):
			t.skipPast("\n", 2)
		case bytes.HasPrefix(rest, []byte("/*")):
			t.skipPast("*/", 2)
		case bytes.HasPrefix(rest, []byte(`"""`)):
			t.quoted(`"""`)
		case c == '"' || c == '\'':
			t.quoted(string(c))
		case isNameByte(c):
			n := 1
			for n < len(rest) && isNameByte(rest[n]) {
				n++
			}
			t.at += n
			return string(rest[:n])
		case c <= ' ':
			t.at++
		default:
			t.at++
			return string(c)
		}
	}
	return ""
}

func (t *tokenizer) skipPast(end string, from int) {
	if n := bytes.Index(t.code[t.at+from:], []byte(end)); n >= 0 {
		t.at += from + n + len(end)
		return
	}
	t.at = len(t.code)
}

// quoted skips a literal; one that is not a text block ends with its line at the latest.
func (t *tokenizer) quoted(quote string) {
	for t.at += len(quote); t.at < len(t.code); t.at++ {
		switch {
		case t.code[t.at] == '\\':
			t.at++
		case t.code[t.at] == '\n' && len(quote) == 1:
			return
		case bytes.HasPrefix(t.code[t.at:], []byte(quote)):
			t.at += len(quote)
			return
		}
	}
	t.at = len(t.code)
}

func isName(tok string) bool { return isNameByte(tok[0]) && (tok[0] < '0' || tok[0] > '9') }

func isNameByte(c byte) bool {
	return c == '_' || c == '$' || c >= 0x80 || c >= '0' && c <= '9' || c|0x20 >= 'a' && c|0x20 <= 'z'
}
