package bash

import (
	"strings"

	"github.com/llmsandbox/llmsandbox/internal/language"
)

// run tells what a command uses. pipes tells that its standard input is a pipe.
func (s *scanner) run(words []word, pipes bool) {
	for len(words) > 0 && words[0].assign > 0 {
		s.facts.Step()
		s.assigned(words[0])
		words = words[1:]
	}
	for hops := 0; len(words) > 0 && hops < 64; hops++ {
		s.facts.Step()
		w := words[0]
		command, ok := s.command(w, hops == 0)
		if !ok {
			return
		}
		words = s.started(command, words, pipes)
	}
}

// command tells the use of one, and returns its name; false: it is not known.
func (s *scanner) command(w word, first bool) (string, bool) {
	switch {
	case w.constant && !w.glob && !w.brace:
		name := base(w.value)
		if name == "" {
			return "", false
		}
		if at, defined := s.k.functions[w.value]; first && defined && at <= w.Start && !s.nested {
			return "", false
		}
		s.facts.Use(w.Span, name, true)
		return name, true
	case w.variable != "":
		s.k.wanted = true
		if v := s.k.variables[w.variable]; v != nil && s.k.told && v.bound == 1 && s.k.variables["IFS"] == nil {
			if fields := strings.Fields(v.value); len(fields) > 0 && !strings.ContainsAny(v.value, "*?[{$`\\'\"") {
				name := base(fields[0])
				s.facts.Use(w.Span, name, true)
				return name, true
			}
		}
	}
	s.facts.Compute(w.Span, language.ComputedName)
	switch {
	case w.broken > 0: // cat${IFS}/etc/passwd
		s.facts.Use(w.Span, base(w.value[:w.broken]), true)
	case w.brace && w.constant && strings.HasPrefix(w.value, "{"): // {cat,/etc/passwd}
		command, _, _ := strings.Cut(w.value[1:], ",")
		s.facts.Use(w.Span, base(command), true)
	case !w.constant && !w.glob && w.tail > 0 && w.tail < len(w.value): // $BIN/cat
		s.facts.Use(language.Span{Start: w.tailAt, End: w.End}, w.value[w.tail:], true)
		return w.value[w.tail:], true
	}
	return "", false
}

// base is a command's name without its folder.
func base(command string) string { return command[strings.LastIndexByte(command, '/')+1:] }

// started is the command that another one starts, with its arguments; none, if it starts
// none. It tells what the other one does by itself.
func (s *scanner) started(command string, words []word, pipes bool) []word {
	args := words[1:]
	switch command {
	case "eval":
		s.evaluate(args)
	case ".", "source":
		args = options(args, "p")
		if len(args) > 0 {
			s.file(args[0])
		}
	case "bash", "sh", "dash", "ash", "ksh", "mksh", "zsh", "rbash", "fish":
		s.shell(words, pipes)
	case "trap", "watch":
		if args = options(args, "n"); len(args) > 0 && (command == "watch" || len(args) > 1) && args[0].value != "-" {
			s.constant(args[0])
		}
	case "alias":
		for _, w := range args {
			if w.assign > 0 {
				s.constant(word{Span: w.Span, value: w.value[w.assign:], constant: w.constant})
			}
		}
	case "su", "runuser", "script":
		for i, w := range args {
			if w.value == "-c" && i+1 < len(args) || w.value == "--command" && i+1 < len(args) {
				s.constant(args[i+1])
			}
		}
	case "hash": // -p gives a name to another program
		if len(args) > 1 && args[0].value == "-p" {
			s.command(args[1], false)
		}
	case "find", "fd":
		s.found(args)
	case "declare", "typeset", "local", "export", "readonly":
		for _, w := range args {
			if w.assign > 0 {
				s.assigned(w)
			} else {
				s.k.set(w.value, "", false)
			}
		}
	case "read", "mapfile", "readarray", "getopts", "printf", "unset", "let", "test", "[":
		s.bound(command, args)
	default:
		return prefixed(command, args, s)
	}
	return nil
}
