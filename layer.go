package llmsandbox

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
)

// layerKey is the key of a language's layer that depends on nothing but the fields of a
// struct, which has a JSON form.
func layerKey(lang string, depends any) string {
	b, _ := json.Marshal(depends)
	sum := sha256.Sum256(b)
	return lang + "-" + hex.EncodeToString(sum[:16])
}
