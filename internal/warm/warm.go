// Package warm keeps sandboxes open for runs to come. Each waits in a process of its own, which owns it: [Keep]. A run
// takes one by [Claim], and is the only one that ever has it.
//
// A sandbox that waits is known by a FIFO with the name KEY.ID in a directory that only its user can enter. Who renames
// it has the sandbox, and holds it open for writing as long as it needs the sandbox: when that ends, for whatever
// reason, the kernel tells the owner, which reads. No byte goes through it.
package warm

import (
	"path/filepath"
	"strings"

	"github.com/llmsandbox/llmsandbox/internal/statedir"
)

// Label is the label of the sandboxes; its value is the key.
const Label = "llmsandbox.warm"

// keySize is the length of a key.
const keySize = 64

// Most is how many sandboxes of a user wait at most.
const Most = 4

// takenPrefix begins the name of a FIFO whose sandbox a run has.
const takenPrefix = "taken."

func dir() (string, error) {
	state, err := statedir.Default()
	return filepath.Join(state, "warm"), err
}

// parse reads the name of a FIFO whose sandbox waits.
func parse(name string) (key, id string, ok bool) {
	key, id, ok = strings.Cut(name, ".")
	return key, id, ok && len(key) == keySize && id != "" && !strings.Contains(id, ".")
}
