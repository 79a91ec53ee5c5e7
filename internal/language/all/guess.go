package all

import (
	"bytes"
	"path"
	"strings"

	"github.com/llmsandbox/llmsandbox/internal/language"
)

// Guess returns a file's language by the ending of its name or else by its #! line.
func Guess(filename string, head []byte) (*language.Language, bool) {
	ext := path.Ext(strings.ReplaceAll(filename, `\`, "/"))
	for _, same := range []func(a, b string) bool{func(a, b string) bool { return a == b }, strings.EqualFold} {
		for _, l := range languages {
			for _, e := range l.Extensions {
				if same(e, ext) {
					return l, true
				}
			}
		}
	}
	program := shebang(head)
	for _, l := range languages {
		if program != "" && (contains(l.Shebangs, program) || contains(l.Shebangs, strings.TrimRight(program, "0123456789."))) {
			return l, true
		}
	}
	return nil, false
}

// shebang is the base name of the interpreter that a #! line names, through env and
// its options and assignments; "" when there is none.
func shebang(head []byte) string {
	head = bytes.TrimPrefix(head, []byte("\xef\xbb\xbf"))
	line, ok := bytes.CutPrefix(head, []byte("#!"))
	if !ok {
		return ""
	}
	line, _, _ = bytes.Cut(line, []byte("\n"))
	fields := strings.Fields(string(line[:min(len(line), 1024)]))
	for i, field := range fields {
		env := i > 0 && path.Base(fields[0]) == "env"
		switch {
		case i == 0 && path.Base(field) != "env":
			return path.Base(field)
		case env && !strings.HasPrefix(field, "-") && !strings.Contains(field, "="):
			return path.Base(field)
		}
	}
	return ""
}
