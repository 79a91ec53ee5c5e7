package all

import (
	"bytes"
	"fmt"
	"path"
	"strings"

	"github.com/llmsandbox/llmsandbox/internal/language"
	"github.com/llmsandbox/llmsandbox/internal/language/bash"
)

// Guess returns a file's language by the ending of its name or else by its #! line.
func Guess(filename string, head []byte) (*language.Language, bool) {
	ext := path.Ext(strings.ReplaceAll(filename, `\`, "/"))
	for _, same := range []func(a, b string) bool{func(a, b string) bool { return a == b }, strings.EqualFold} {
		for l := range each {
			for _, e := range l.Extensions {
				if same(e, ext) {
					return l, true
				}
			}
		}
	}
	return interpreted(shebang(head))
}

// Choose returns the language of a file that is to be run, or of code without a name. It is Guess's, but
// a shell script's #! line counts for more than its ending, which all shells share. Code
// with neither a name nor a #! line has no language: both results are nil.
func Choose(filename string, head []byte) (*language.Language, error) {
	program := shebang(head)
	l, ok := Guess(filename, head)
	if l == &bash.Language && program != "" {
		l, ok = interpreted(program)
	}
	if !ok && (filename != "" || program != "") {
		return nil, unknownKind(filename, program)
	}
	return l, nil
}

// unknownKind is the error for code whose language its name, which may be empty, and the program of its
// #! line, too, do not tell.
func unknownKind(name, program string) error {
	what := "cannot run " + name
	if name == "" {
		what = "cannot run this code"
	}
	if program != "" {
		return fmt.Errorf("%s: its first line asks for %q, which is not supported: choose one of %s with --lang", what, program, strings.Join(names(), ", "))
	}
	var endings []string
	for l := range each {
		endings = append(endings, l.Extensions...)
	}
	return fmt.Errorf("%s: its name does not say which language it is in: use one of the endings %s, or choose the language with --lang", what, strings.Join(endings, " "))
}

// interpreted is the language whose code a program of a #! line runs.
func interpreted(program string) (*language.Language, bool) {
	if program == "" {
		return nil, false
	}
	for _, name := range []string{program, strings.TrimRight(program, "0123456789.")} {
		for l := range each {
			if contains(l.Shebangs, name) {
				return l, true
			}
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
