package javascript

import (
	"bytes"
	"encoding/base64"
	"net/url"
	"strings"
)

// usesModules reports whether code has a static import or an export at the start of a
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

// moduleName is the name of the module that a program writes so.
func moduleName(text string) string {
	if len(text) > 5 && strings.EqualFold(text[:5], "node:") {
		return text[5:]
	}
	return text
}

// bindings are Node's own parts, each with the module that gives what it does.
const bindings = " spawn_sync=child_process process_wrap=child_process tcp_wrap=net pipe_wrap=net stream_wrap=net udp_wrap=dgram cares_wrap=dns " +
	"contextify=vm fs_dir=fs fs_event_wrap=fs tls_wrap=tls worker=worker_threads "

func builtinOf(binding string) string {
	if _, rest, ok := strings.Cut(bindings, " "+binding+"="); ok {
		binding, _, _ = strings.Cut(rest, " ")
	}
	return binding
}

// dataCode is the code in an address that holds a module itself.
func dataCode(address string) (string, bool) {
	if len(address) < 5 || !strings.EqualFold(address[:5], "data:") {
		return "", false
	}
	kind, data, _ := strings.Cut(address[5:], ",")
	if plain, err := url.PathUnescape(data); err == nil {
		data = plain
	}
	if strings.HasSuffix(strings.ToLower(strings.TrimSpace(kind)), ";base64") {
		if code, err := base64.RawStdEncoding.DecodeString(strings.TrimRight(data, "=")); err == nil {
			data = string(code)
		}
	}
	return data, true
}
