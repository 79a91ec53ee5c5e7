package registries_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/llmsandbox/llmsandbox/internal/language"
	"github.com/llmsandbox/llmsandbox/internal/language/registries"
)

func TestPlain(t *testing.T) {
	for _, good := range []string{"six", "Django>=4.2", "@types/node", "g++", "a:b:1.0", strings.Repeat("a", 200)} {
		if err := registries.Plain(good); err != nil {
			t.Error(err)
		}
	}
	for _, bad := range []string{"", "-e", "/a", "./a", "~a", "http://a", "foo; rm -rf /", "foo$(x)", "foo`x`", "foo|x", "foo\\x", "foo\"x", "a/../b", "a\x00", "ä", "a\u2028b", strings.Repeat("a", 201), "a%20b", "a#b"} {
		if err := registries.Plain(bad); !errors.Is(err, language.ErrInvalidLibrary) {
			t.Errorf("%q: %v, want language.ErrInvalidLibrary", bad, err)
		}
	}
}
