package language

import "strings"

// Ahead describes interpreters that are started before their code is known.
type Ahead struct {
	// Capture takes the place of the language's. It also has the interpreter wait for its code, which is not
	// in its main file yet: it sends the event ready, reads one request, becomes the program of that,
	// sends the event begun and closes descriptors 3 and 4. docs/kernel-protocol.md has the protocol.
	Capture func(CaptureSource) Capture
	// Forks tells that it does not take the request itself, but forks, as the agent asks it to on a
	// socket (descriptor 3), processes that do. A request then says where the capture of its program is.
	Forks bool
	// Driver is a program that executes the file of a kernel's driver in its place, of an interpreter that Forks.
	Driver func(file string) []byte
	// Settable reports whether a variable can still be set then, see [SetLate]; nil: none can.
	Settable func(variable string) bool
	// Args reports whether it can be given arguments then.
	Args bool
	// Module reports whether a text can be the name of a module; nil: none are imported ahead.
	Module func(name string) bool
}

// SetLate reports whether a variable can be set once an interpreter has started, which reads those
// whose names begin with one of own: the C library does not read it before.
func SetLate(name string, own ...string) bool {
	for _, prefix := range append(own, "LD_", "LC_", "MALLOC_", "GLIBC_", "MUSL_") {
		if strings.HasPrefix(name, prefix) {
			return false
		}
	}
	switch name {
	case "HOME", "PATH", "LANG", "LANGUAGE", "TZ", "TZDIR", "LOCPATH", "GCONV_PATH":
		return false
	}
	return true
}
