package cli

import (
	"strings"
	"unicode"
)

// incomplete guesses whether a cell goes on in the next line: a bracket is open, a line
// ends in a backslash, or a block has begun; an empty line ends any but the first two.
// A guess that is wrong costs the user an empty line, or an error of the language's.
func incomplete(language, code string) bool {
	last := code[strings.LastIndexByte(code, '\n')+1:]
	if strings.HasSuffix(last, `\`) {
		return true
	}
	if strings.TrimSpace(last) == "" {
		return false
	}
	if language != "bash" && openBrackets(code, language) > 0 {
		return true
	}
	switch language {
	case "python":
		first := code[:len(code)-len(strings.TrimLeft(code, " \t\n"))]
		block := strings.Contains(code, "\n") && unicode.IsSpace(rune(last[0]))
		return strings.HasSuffix(strings.TrimSpace(last), ":") || block || strings.HasPrefix(strings.TrimPrefix(code, first), "@") && !strings.Contains(code, "\n")
	case "bash":
		return count(code, "if", "case", "do", "{") > count(code, "fi", "esac", "done", "}")
	case "ruby":
		return count(code, "def", "class", "module", "do", "begin", "case", "if", "unless", "while") > count(code, "end")
	}
	return false
}

// openBrackets is how many brackets are open at the end, outside of strings and comments.
func openBrackets(code, language string) int {
	comment := "//"
	if language == "python" || language == "r" || language == "ruby" {
		comment = "#"
	}
	open, quote := 0, byte(0)
	for i := 0; i < len(code); i++ {
		c := code[i]
		switch {
		case quote != 0 && c == '\\':
			i++
		case quote != 0 && (c == quote || c == '\n' && quote != '`'):
			quote = 0
		case quote != 0:
		case c == '"' || c == '\'' || c == '`':
			quote = c
		case strings.HasPrefix(code[i:], comment):
			for i < len(code) && code[i] != '\n' {
				i++
			}
		case c == '(' || c == '[' || c == '{':
			open++
		case c == ')' || c == ']' || c == '}':
			open--
		}
	}
	return open
}

// count returns how often words of a list begin a command of the code.
func count(code string, list ...string) int {
	n := 0
	for _, line := range strings.Split(code, "\n") {
		for _, word := range strings.FieldsFunc(line, func(r rune) bool { return unicode.IsSpace(r) || r == ';' }) {
			for _, w := range list {
				if word == w {
					n++
				}
			}
		}
	}
	return n
}
