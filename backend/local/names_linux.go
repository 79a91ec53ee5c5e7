package local

import "strings"

// The names of sandboxes and layers are checked by hand: the package is initialised in
// every process, and expressions for them would take a tenth of a millisecond of that.

// validID tells whether a sandbox may have that id.
func validID(id string) bool { return plainName(id, 40) }

// validKey tells whether a layer may have that key.
func validKey(key string) bool { return plainName(key, 100) && key[0] != '-' }

// plainName tells whether a name has 1 to most bytes, all of a-z, 0-9 and '-'.
func plainName(name string, most int) bool {
	other := func(r rune) bool { return (r < 'a' || r > 'z') && (r < '0' || r > '9') && r != '-' }
	return name != "" && len(name) <= most && strings.IndexFunc(name, other) < 0
}
