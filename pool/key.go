package pool

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/llmsandbox/llmsandbox"
	"github.com/llmsandbox/llmsandbox/internal/language/all"
)

// A Key says which sandboxes are alike.
type Key struct {
	// Language and Image are as in llmsandbox.Options; empty means those of Config.Options.
	Language, Image string
	// Libraries are installed in it; order and doubles do not matter. None means those of
	// Config.Options, for its language.
	Libraries []string
}

// canonical returns the key in the one form that all who mean the same have.
func (c *Config) canonical(k Key) (Key, error) {
	lang, err := all.Get(cmp.Or(k.Language, c.Options.Language, llmsandbox.DefaultLanguage))
	if err != nil {
		return Key{}, fmt.Errorf("key of a pool: %w", err)
	}
	libraries := k.Libraries
	if len(libraries) == 0 && lang.Name == c.language {
		libraries = c.Options.Libraries
	}
	libraries = slices.Sorted(slices.Values(libraries))
	return Key{Language: lang.Name, Image: cmp.Or(k.Image, c.Options.Image), Libraries: slices.Compact(libraries)}, nil
}

// id is the same for the same canonical keys, and no other.
func (k Key) id() string {
	b, _ := json.Marshal(k) // strings always have a form
	return string(b)
}

// options are those that a sandbox of a canonical key is opened with.
func (c *Config) options(k Key) llmsandbox.Options {
	o := c.Options
	o.Language, o.Image, o.Libraries = k.Language, k.Image, k.Libraries
	o.Resettable = o.Resettable || c.Reuse == ReuseTenant
	return o
}
