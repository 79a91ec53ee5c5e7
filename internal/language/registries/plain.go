package registries

import (
	"fmt"
	"strings"

	"github.com/llmsandbox/llmsandbox/internal/language"
)

// maxLibrary bounds a library's name with its version.
const maxLibrary = 200

// Plain refuses what no ecosystem's library looks like, before any grammar is asked:
// what is empty or
// long, starts like an option or a path, leads up or elsewhere, holds anything but
// visible ASCII, or what a shell would take for more than a word.
func Plain(library string) error {
	why := ""
	switch {
	case library == "":
		why = "it is empty"
	case len(library) > maxLibrary:
		return fmt.Errorf("library %.20q…: %w: it is longer than %d characters", library, language.ErrInvalidLibrary, maxLibrary)
	case library[0] == '-':
		why = "it starts like an option"
	case strings.ContainsRune("/.~", rune(library[0])) || strings.Contains(library, "..") || strings.Contains(library, "://"):
		why = "it is a path or an address"
	case strings.ContainsFunc(library, func(r rune) bool { return r <= ' ' || r > '~' }):
		why = "it holds a space, a control character or one that is not ASCII"
	case strings.ContainsAny(library, ";&|$`\"'\\(){}?#%"):
		why = "it holds a character that no library's name has"
	default:
		return nil
	}
	return fmt.Errorf("library %q: %w: %s", library, language.ErrInvalidLibrary, why)
}
