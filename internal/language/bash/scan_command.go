package bash

import (
	"strings"

	"github.com/llmsandbox/llmsandbox/internal/language"
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

// base is a command's name without its folder.
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
