package hostroot

import (
	"os"
	"path/filepath"
)

// Locate returns the host's own file behind a program of a language that a root made
// now would have, and "" when it would have none. It looks for that one only.
func Locate(language, program string, opts Options) string {
	if opts.Getenv == nil {
		opts.Getenv = os.Getenv
	}
	path, _ := newFinder(opts.Getenv).locate(language, program)
	if path == "" {
		return ""
	}
	real, err := filepath.EvalSymlinks(path)
	if err != nil {
		return "" // it went away just now
	}
	return real
}
