// Package hostroot prepares a root filesystem out of the host's own toolchains: a
// skeleton directory with a synthetic /etc, and what is to be mounted read-only on it.
// No home directory, no /var, no socket and nothing secret of the host is in it.
package hostroot

// A Root is a prepared root filesystem. It is immutable.
type Root struct {
	// Skeleton is a directory with mount points, links and /etc, readable by any user
	// and never changed after it was made.
	Skeleton string
	// Binds are to be mounted read-only, in this order; the targets exist.
	Binds []Bind
	// Env is what the toolchains need, PATH and the locale first.
	Env        []string
	Toolchains []Found
}

// A Bind is a host directory and where it appears inside.
type Bind struct{ Source, Target string }

// Found is a program of a language. Path is inside the root.
type Found struct{ Language, Program, Path string }

// Options say where to look. The zero value asks the process's environment.
type Options struct {
	// Getenv replaces os.Getenv.
	Getenv func(string) string
	// InPlace has the toolchains where the host has them. For OtherUser, they are only those that any user of the host can reach.
	InPlace, OtherUser bool
}
