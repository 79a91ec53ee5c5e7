package bash

import (
	"strings"

	"mvdan.cc/sh/v3/syntax"

	"github.com/llmsandbox/llmsandbox/internal/language"
	"github.com/llmsandbox/llmsandbox/internal/lex"
)

// run tells what a command uses, and what the commands do that it starts.
func (s *scanner) run(words []*word) {
	for first := true; len(words) > 0; first = false {
		s.Step()
		if words[0].is("--") { // time -- a
			words = words[1:]
			continue
		}
		command := s.command(words[0], first)
		if command == "" {
			return
		}
		words = s.started(command, words)
	}
}

// command tells the use of one, and returns its name, or "" if it is not known or a function.
func (s *scanner) command(w *word, first bool) string {
	value := w.value.String()
	if w.plain() {
		if first && s.defined(w) {
			return ""
		}
		name := strings.TrimRight(base(value), string(rune(odd)))
		s.Use(w.Span, name, true)
		return name
	}
	name, sure := "", false
	if w.variable != "" {
		name, sure = s.names.held(w.variable)
	}
	if name == "" || !sure {
		s.Compute(w.Span, language.ComputedName)
	}
	switch {
	case name != "":
		s.Use(w.Span, name, true)
	case w.fields > 0: // cat${IFS}/etc/passwd
		s.Use(w.Span, base(value[:w.fields]), true)
	case w.constant && strings.HasPrefix(value, "{"): // {cat,/etc/passwd}
		command, _, _ := strings.Cut(value[1:], ",")
		s.Use(w.Span, base(command), true)
	case !w.constant && !w.pattern && strings.Contains(value[w.behind:], "/"): // $BIN/cat
		name = base(value)
		s.Use(w.Span, name, true)
	}
	return name
}

// base is a command's name without its directory.
func base(command string) string { return command[strings.LastIndexByte(command, '/')+1:] }

// started is the command that another one starts, with its arguments; none, if it starts
// none. It tells what the other one does by itself.
func (s *scanner) started(command string, words []*word) []*word {
	args := words[1:]
	switch command {
	case "eval":
		s.evaluate(args)
	case ".", "source":
		if args = options(s, args, "p"); len(args) > 0 {
			s.file(args[0])
		}
	case "bash", "sh", "dash", "ash", "ksh", "mksh", "zsh", "rbash", "fish":
		s.shell(words)
	case "trap", "watch":
		if args = options(s, args, "n"); len(args) > 0 && (command == "watch" || len(args) > 1) && !args[0].is("-") {
			s.constant(args[0])
		}
	case "alias":
		for _, w := range args {
			if _, code, ok := strings.Cut(w.value.String(), "="); ok {
				s.constant(w.with(code))
			}
		}
	case "su", "runuser", "script":
		for i, w := range args {
			if i > 0 && (args[i-1].is("-c") || args[i-1].is("--command")) {
				s.constant(w)
			}
		}
	case "hash": // -p gives a name to another program
		if len(args) > 1 && args[0].is("-p") {
			s.command(args[1], false)
		}
	case "find", "fd":
		s.found(args)
	case "declare", "typeset", "local", "export", "readonly":
		for _, w := range args {
			s.declare(w)
		}
	case "read", "mapfile", "readarray", "getopts", "printf", "unset", "let", "test", "[":
		s.bound(command, args)
	default:
		return s.prefixed(command, args)
	}
	return nil
}

// prefixed is the command that follows one that starts it.
func (s *scanner) prefixed(command string, args []*word) []*word {
	values, skip := "", 0
	switch command {
	case "command":
		if len(args) > 0 && (args[0].is("-v") || args[0].is("-V")) {
			return nil
		}
	case "builtin", "nohup", "setsid", "busybox", "toybox", "unbuffer", "catchsegv", "fakeroot", "eatmydata", "linux32", "linux64", "setarch":
	case "doas":
		values = "uC"
	case "exec":
		values = "a"
	case "env":
		return s.environment(args)
	case "sudo":
		values = "ugphCcrtTUDR"
	case "timeout":
		values, skip = "ks", 1
	case "nice":
		values = "n"
	case "ionice":
		values = "cnpPu"
	case "time":
		values = "fo"
	case "stdbuf":
		values = "ioe"
	case "xargs":
		values = "IEdLnPsa"
	case "chroot", "flock", "taskset", "chrt":
		values, skip = "wE", 1
	case "strace", "ltrace":
		values = "eopsuEPabIOSX"
	case "unshare", "nsenter":
		values = "SGRt"
	case "parallel":
		values = "jISNnPad"
	default:
		return nil
	}
	args = options(s, args, values)
	for command == "sudo" && len(args) > 0 && strings.Contains(args[0].value.String(), "=") {
		s.Step()
		args = args[1:]
	}
	if len(args) <= skip {
		return nil
	}
	return args[skip:]
}

// options goes over options, and the values of those in values that are words of their
// own.
func options(s *scanner, args []*word, values string) []*word {
	for len(args) > 0 {
		s.Step()
		o := args[0].value.String()
		if !args[0].constant || len(o) < 2 || o[0] != '-' {
			break
		}
		args = args[1:]
		if o == "--" {
			break
		}
		if o[1] != '-' && strings.IndexAny(o[1:], values) == len(o)-2 && len(args) > 0 {
			args = args[1:]
		}
	}
	return args
}

// environment is the command that env starts.
func (s *scanner) environment(args []*word) []*word {
	for len(args) > 0 {
		s.Step()
		w := args[0]
		value := w.value.String()
		split, ok := strings.CutPrefix(value, "--split-string=")
		if !ok {
			split, ok = strings.CutPrefix(value, "-S")
		}
		switch {
		case value == "-S" || value == "--split-string":
			if len(args) > 1 {
				s.constant(args[1])
			}
			return nil
		case ok:
			s.constant(w.with(split))
			return nil
		case value == "-u" || value == "-C" || value == "--unset" || value == "--chdir":
			args = args[min(1, len(args)-1):]
		case !strings.Contains(value, "=") && !strings.HasPrefix(value, "-"), !w.constant && !strings.Contains(value, "="):
			return args
		}
		args = args[1:]
	}
	return nil
}

// found reads the commands that find starts. One of them may be another find.
func (s *scanner) found(args []*word) {
	start := -1
	for i, w := range args {
		s.Step()
		begins := false
		switch w.value.String() {
		case "-exec", "-execdir", "-ok", "-okdir", "-x", "-X", "--exec", "--exec-batch":
			begins = true
		case ";", "+":
		default:
			continue
		}
		if start >= 0 {
			s.run(args[start:i])
		}
		if start = -1; begins {
			start = i + 1
		}
	}
	if start >= 0 {
		s.run(args[start:])
	}
}

// evaluate reads the code that eval is given.
func (s *scanner) evaluate(args []*word) {
	if len(args) > 0 && args[0].is("--") {
		args = args[1:]
	}
	if len(args) == 0 {
		return
	}
	at := language.Span{Start: args[0].Start, End: args[len(args)-1].End}
	parts := make([]string, 0, len(args))
	for _, w := range args {
		if !w.plain() {
			s.Compute(at, language.ComputedCode)
			return
		}
		parts = append(parts, w.value.String())
	}
	s.nested(at, strings.Join(parts, " "))
}

// constant reads code that is one argument.
func (s *scanner) constant(w *word) {
	if w.constant {
		s.nested(w.Span, w.value.String())
	} else {
		s.Compute(w.Span, language.ComputedCode)
	}
}

// file is a file whose code is executed.
func (s *scanner) file(w *word) {
	switch {
	case !w.plain():
		s.Compute(w.Span, language.ComputedImport)
	case w.is("/dev/stdin"):
		s.standard(w.Span)
	default:
		s.Import(w.Span, w.value.String())
	}
}

// shell reads what a shell that is started executes.
func (s *scanner) shell(words []*word) {
	args := words[1:]
	for len(args) > 0 {
		s.Step()
		o := args[0].value.String()
		if !args[0].constant || len(o) < 2 || o[0] != '-' && o[0] != '+' {
			break
		}
		args = args[1:]
		switch {
		case o == "--version" || o == "--help":
			return
		case o == "--rcfile" || o == "--init-file":
			if len(args) > 0 {
				s.file(args[0])
				args = args[1:]
			}
		case o == "-s":
			args = nil
		case strings.HasPrefix(o, "--"):
		case strings.Contains(o, "c"):
			if args = options(s, args, "oO"); len(args) > 0 {
				s.constant(args[0])
			}
			return
		case strings.HasSuffix(o, "o") || strings.HasSuffix(o, "O"):
			args = args[min(1, len(args)):]
		}
		if o == "--" {
			break
		}
	}
	if len(args) > 0 && !args[0].is("-") {
		s.file(args[0])
	} else {
		s.standard(words[0].Span)
	}
}

// standard reads code that comes on a command's standard input.
func (s *scanner) standard(at language.Span) {
	switch {
	case s.fed == nil:
		s.Compute(at, language.ComputedCode)
	case s.fed.file && s.fed.code.plain():
		s.Import(s.fed.code.Span, s.fed.code.value.String())
	case s.fed.file:
		s.Compute(at, language.ComputedCode)
	default:
		s.constant(s.fed.code)
	}
}

// A word is one word of a command.
type word struct {
	language.Span
	// value is what it stands for without the parts that are not constant.
	value strings.Builder
	// constant tells that value is all of it.
	constant bool
	// quoted tells that a part of it is quoted.
	quoted bool
	// pattern tells that it stands for files or for several words: *.c, {a,b}; brace, that
	// a brace in it is not quoted.
	pattern, brace bool
	// behind is how much of value comes before the last part that is not constant.
	behind int
	// fields are how much of value comes before the first expansion of IFS, or 0.
	fields int
	// variable is the name of the one that is all of the word.
	variable string
}

// plain tells that a word is nothing but its value.
func (w *word) plain() bool { return w.constant && !w.pattern }

// is tells whether a word is text.
func (w *word) is(text string) bool { return w.constant && w.value.String() == text }

// with is a word at the same place with another value.
func (w *word) with(value string) *word {
	of := &word{Span: w.Span, constant: w.constant}
	of.value.WriteString(value)
	return of
}

// word reads one.
func (s *scanner) word(of *syntax.Word) *word {
	w := &word{Span: s.span(of), constant: true}
	for _, part := range of.Parts {
		s.add(w, part)
	}
	if len(of.Parts) == 1 {
		part := of.Parts[0]
		if q, ok := part.(*syntax.DblQuoted); ok && len(q.Parts) == 1 {
			part = q.Parts[0]
		}
		if p, ok := part.(*syntax.ParamExp); ok && variable(p) {
			w.variable = p.Param.Value
		}
	}
	return w
}

// variable tells whether an expansion is that of a variable, and nothing more.
func variable(p *syntax.ParamExp) bool {
	return !p.Excl && !p.Length && p.Index == nil && p.Slice == nil && p.Repl == nil && p.Names == 0 && p.Exp == nil
}

// add adds a part to a word.
func (s *scanner) add(w *word, part syntax.WordPart) {
	switch p := part.(type) {
	case *syntax.Lit:
		w.literal(s, p.Value)
		return
	case *syntax.SglQuoted:
		w.quoted = true
		if p.Dollar {
			w.value.WriteString(s.ansi(p.Value))
		} else {
			w.value.WriteString(p.Value)
		}
		return
	case *syntax.DblQuoted:
		w.quoted = true
		for _, part := range p.Parts {
			if text, ok := part.(*syntax.Lit); ok {
				w.unquote(s, text.Value, "$`\"\\")
			} else {
				s.add(w, part)
			}
		}
		return
	case *syntax.ParamExp:
		if p.Param.Value == "IFS" && w.fields == 0 {
			w.fields = w.value.Len()
		}
	}
	w.constant, w.behind = false, w.value.Len()
}

// literal adds text that is not quoted.
func (w *word) literal(s *scanner, text string) {
	for i := 0; i < len(text); i++ {
		s.Step()
		c := text[i]
		switch c {
		case '\\':
			w.quoted = true
			if i++; i == len(text) || text[i] == '\n' {
				continue
			}
			c = text[i]
		case '*', '?':
			w.pattern = true
		case '[':
			w.pattern = w.pattern || text != "[" && text != "[["
		case '{':
			w.brace = true
		case ',':
			w.pattern = w.pattern || w.brace
		case '.':
			w.pattern = w.pattern || w.brace && strings.HasPrefix(text[i:], "..")
		}
		w.value.WriteByte(c)
	}
}

// unquote adds text in which backslashes escape some characters and ends of lines only.
func (w *word) unquote(s *scanner, text, escaped string) {
	for i := 0; i < len(text); i++ {
		s.Step()
		if text[i] == '\\' && i+1 < len(text) {
			if text[i+1] == '\n' {
				i++
				continue
			}
			if strings.IndexByte(escaped, text[i+1]) >= 0 {
				i++
			}
		}
		w.value.WriteByte(text[i])
	}
}

// pattern reports one such as @(a|b) that has more in it than text. The parser only
// looks for the bracket that ends it, and may take another one for that.
func (s *scanner) pattern(p *syntax.ExtGlob) {
	text := p.Pattern.Value
	odd := strings.ContainsAny(text, "'\"\\`") || strings.Contains(text, "${")
	for i := range len(text) {
		odd = odd || text[i] == '(' && (i == 0 || strings.IndexByte("?*+@!", text[i-1]) < 0)
	}
	if odd {
		s.unreadable("a pattern in it is too complex")
		s.nested(s.span(p), "_=("+strings.ReplaceAll(text, "|", " ")+")")
	}
}

var ansiEscapes = &lex.Escapes{Letters: "abeEfnrtv\\'\"?", Values: "\a\b\x1b\x1b\f\n\r\t\v\\'\"?", Bytes: true, Long: true, Unknown: true}

// ansi is the value of a string of the form $'...'.
func (s *scanner) ansi(text string) string {
	l := lex.Lexer{Cursor: lex.Cursor{Code: text}, Facts: s.Facts}
	var b strings.Builder
	for !l.End() {
		s.Step()
		switch c := l.At(0); {
		case c == '\\' && l.At(1) == 'c':
			b.WriteByte(l.At(2) & 0x1f)
			l.Pos += 3
		case c == '\\':
			l.Escape(&b, ansiEscapes)
		default:
			b.WriteByte(c)
			l.Pos++
		}
	}
	value, _, _ := strings.Cut(b.String(), "\x00") // it ends the string for Bash
	return value
}
