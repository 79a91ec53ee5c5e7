package python

import "strings"

// libraryName is the name that a requirement asks for.
func libraryName(canonical string) string {
	if n := strings.IndexAny(canonical, "[=<>!~; "); n >= 0 {
		canonical = canonical[:n]
	}
	return normal(canonical)
}
