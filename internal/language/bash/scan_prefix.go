package bash

import "strings"

// prefixed is the command that follows one that starts it.
func prefixed(command string, args []word, s *scanner) []word {
	values, skip := "", 0
	switch command {
	case "command", "builtin", "nohup", "setsid", "busybox", "toybox", "doas", "unbuffer", "catchsegv", "fakeroot", "eatmydata", "linux32", "linux64", "setarch":
		if command == "doas" {
			values = "uC"
		}
		for _, w := range args {
			if command == "command" && (w.value == "-v" || w.value == "-V") {
				return nil
			}
		}
	case "exec":
		values = "a"
	case "env":
		return environment(args, s)
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
	args = options(args, values)
	for len(args) > 0 && args[0].assign > 0 && command == "sudo" {
		args = args[1:]
	}
	if len(args) <= skip {
		return nil
	}
	return args[skip:]
}

// options goes over options, and the values of those in values that are words of their
// own.
func options(args []word, values string) []word {
	for len(args) > 0 {
		o := args[0].value
		if !args[0].constant || len(o) < 2 || o[0] != '-' {
			break
		}
		args = args[1:]
		if o == "--" {
			break
		}
		if o[1] != '-' && strings.IndexByte(values, o[len(o)-1]) >= 0 && strings.IndexAny(o[1:], values) == len(o)-2 && len(args) > 0 {
			args = args[1:]
		}
	}
	return args
}

// environment is the command that env starts.
func environment(args []word, s *scanner) []word {
	for len(args) > 0 {
		w := args[0]
		switch {
		case w.assign > 0 || w.constant && strings.Contains(w.value, "=") && !strings.HasPrefix(w.value, "-"):
		case w.value == "-S" || w.value == "--split-string":
			if len(args) > 1 {
				s.constant(args[1])
			}
			return nil
		case strings.HasPrefix(w.value, "-S"), strings.HasPrefix(w.value, "--split-string="):
			w.value = strings.TrimPrefix(strings.TrimPrefix(w.value, "-S"), "--split-string=")
			s.constant(w)
			return nil
		case w.value == "-u" || w.value == "-C" || w.value == "--unset" || w.value == "--chdir":
			args = args[min(1, len(args)-1):]
		case strings.HasPrefix(w.value, "-") && w.constant:
		default:
			return args
		}
		args = args[1:]
	}
	return nil
}

// found reads the commands that find starts.
func (s *scanner) found(args []word) {
	if !s.deeper() {
		return
	}
	defer func() { s.depth-- }()
	for i := 0; i < len(args); i++ {
		s.facts.Step()
		switch args[i].value {
		case "-exec", "-execdir", "-ok", "-okdir", "-x", "-X", "--exec", "--exec-batch":
		default:
			continue
		}
		start := i + 1
		for i++; i < len(args) && args[i].value != ";" && args[i].value != "+"; i++ {
			s.facts.Step()
		}
		s.run(args[min(start, len(args)):min(i, len(args))], false)
	}
}
