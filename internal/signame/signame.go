// Package signame names Linux signals on every operating system, since the program
// that a signal ended ran on Linux wherever the caller is.
package signame

import "strconv"

// names are Linux's signals 1 to 31, as on amd64 and arm64.
var names = [...]string{
	1: "SIGHUP", "SIGINT", "SIGQUIT", "SIGILL", "SIGTRAP", "SIGABRT", "SIGBUS", "SIGFPE",
	"SIGKILL", "SIGUSR1", "SIGSEGV", "SIGUSR2", "SIGPIPE", "SIGALRM", "SIGTERM", "SIGSTKFLT",
	"SIGCHLD", "SIGCONT", "SIGSTOP", "SIGTSTP", "SIGTTIN", "SIGTTOU", "SIGURG", "SIGXCPU",
	"SIGXFSZ", "SIGVTALRM", "SIGPROF", "SIGWINCH", "SIGIO", "SIGPWR", "SIGSYS",
}

// Name returns a signal's name, such as "SIGSEGV", or "signal 40" for one without.
func Name(signal uint32) string {
	if signal > 0 && int(signal) < len(names) {
		return names[signal]
	}
	return "signal " + strconv.FormatUint(uint64(signal), 10)
}

// Number returns the signal of a name, with or without its SIG, or of a decimal
// number; ok is false when there is none.
func Number(name string) (signal uint32, ok bool) {
	if n, err := strconv.ParseUint(name, 10, 32); err == nil {
		return uint32(n), n > 0 && n <= 64
	}
	for i, s := range names {
		if s != "" && (s == name || s[3:] == name) {
			return uint32(i), true
		}
	}
	return 0, false
}
