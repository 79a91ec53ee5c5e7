package agentclient

import (
	"crypto/rand"
	"encoding/base64"
)

// NewToken returns what a backend gives an agent, and shows it when it connects again: 24
// random bytes, as text.
func NewToken() string {
	var b [24]byte
	rand.Read(b[:]) // never fails
	return base64.RawURLEncoding.EncodeToString(b[:])
}
