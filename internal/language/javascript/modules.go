package javascript

import "bytes"

// usesModules tells whether code has a static import or an export at the start of a
// statement, outside of comments, strings and templates.
func usesModules(code []byte) bool {
	start := true      // at the start of a statement
	last := byte('\n') // the last character that is no space
	for i := 0; i < len(code); {
		switch c := code[i]; {
		case bytes.HasPrefix(code[i:], []byte("//")) || i == 0 && bytes.HasPrefix(code, []byte("#!")):
			i, start, last = after(code, i, "\n"), true, '\n'
		case bytes.HasPrefix(code[i:], []byte("/*")):
			i = after(code, i+2, "*/")
		case c == '"' || c == '\'' || c == '`' || c == '/' && bytes.IndexByte([]byte("\n;{}(,=:[!&|?+"), last) >= 0:
			i, start, last = skipQuoted(code, i), false, c
		case c == '\n' || c == ';' || c == '}':
			i, start, last = i+1, true, c
		case c == ' ' || c == '\t' || c == '\r':
			i++
		case isWord(c):
			end := i
			for end < len(code) && isWord(code[end]) {
				end++
			}
			if start && last != '.' && isModuleWord(string(code[i:end]), bytes.TrimLeft(code[end:], " \t\r\n")) {
				return true
			}
			i, start, last = end, false, 'a'
		default:
			i, start, last = i+1, false, c
		}
	}
	return false
}

func isModuleWord(word string, rest []byte) bool {
	if len(rest) == 0 {
		return false
	}
	c := rest[0]
	opens := isWord(c) || c == '{' || c == '*'
	return word == "export" && opens || word == "import" && (opens || c == '"' || c == '\'')
}

// skipQuoted returns the index after the string, template or regular expression at i.
func skipQuoted(code []byte, i int) int {
	quote := code[i]
	class := false // inside [...] of a regular expression
	for i++; i < len(code); i++ {
		switch c := code[i]; {
		case c == '\\':
			i++
		case c == '\n' && quote != '`':
			return i
		case quote == '/' && (c == '[' || c == ']'):
			class = c == '['
		case c == quote && !class:
			return i + 1
		}
	}
	return len(code)
}

// after returns the index behind the next end, or that of the code's end.
func after(code []byte, i int, end string) int {
	if n := bytes.Index(code[i:], []byte(end)); n >= 0 {
		return i + n + len(end)
	}
	return len(code)
}

func isWord(c byte) bool {
	return c == '_' || c == '$' || c >= 0x80 || c >= '0' && c <= '9' || c|0x20 >= 'a' && c|0x20 <= 'z'
}
