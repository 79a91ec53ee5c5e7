package local

import "strings"

// validID reports whether a sandbox may have that id. The names of sandboxes are checked by
// hand: the package is initialised in every process, and an expression for them would take
// a tenth of a millisecond of that.
func validID(id string) bool {
	other := func(r rune) bool { return (r < 'a' || r > 'z') && (r < '0' || r > '9') && r != '-' }
	return id != "" && len(id) <= 40 && strings.IndexFunc(id, other) < 0
}
