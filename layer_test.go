package llmsandbox

import (
	"testing"

	"github.com/llmsandbox/llmsandbox/internal/language"
)

// TestLayerKeysStay: a key that changes makes everybody's layers anew, so it changes with
// a version and never by chance.
func TestLayerKeysStay(t *testing.T) {
	cache := language.Cache{Name: "c", Target: "/tmp/c", Fill: []language.Step{{Argv: []string{"fill"}}}}
	if got := cacheKey("x", "p", cache); got != "x-6d74569ede7e4f1c3eec7c37362c795b" {
		t.Errorf("a cache's key is %s", got)
	}
	q := &libraryRequest{language: &language.Language{Name: "x"}, libraries: []string{"a", "b"}}
	if got := q.key("p", "l"); got != "x-3ef571d7d09fed57474516e81569d8d5" {
		t.Errorf("the key of libraries is %s", got)
	}
}
