package store

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/base32"
	"encoding/hex"
	"strings"
)

const (
	// secretPrefix lets people, and programs that look for secrets in code, tell a key.
	secretPrefix = "lsb_"
	idLen        = 8  // characters of five bits
	randomLen    = 52 // characters for 256 bits
	secretLen    = len(secretPrefix) + idLen + 1 + randomLen
	alphabet     = "abcdefghijklmnopqrstuvwxyz234567"
)

var lowerBase32 = base32.NewEncoding(alphabet).WithPadding(base32.NoPadding)

// newSecret makes the id of a key, and its secret: lsb_ID_RANDOM.
func newSecret() (id, secret string) {
	id = lowerBase32.EncodeToString(randomBytes(idLen * 5 / 8))
	return id, secretPrefix + id + "_" + lowerBase32.EncodeToString(randomBytes(sha256.Size))
}

// parseSecret returns the id in a secret that has the form of one.
func parseSecret(secret string) (id string, ok bool) {
	rest, ok := strings.CutPrefix(secret, secretPrefix)
	if !ok || len(secret) != secretLen || rest[idLen] != '_' {
		return "", false
	}
	id, random := rest[:idLen], rest[idLen+1:]
	other := func(r rune) bool { return !strings.ContainsRune(alphabet, r) }
	return id, !strings.ContainsFunc(id+random, other)
}

// digest is what the database has of a secret. It is a plain SHA-256: a slow hash protects what people
// think up and others can guess, and 256 random bits cannot be guessed however fast the hash is.
func digest(secret string) string {
	sum := sha256.Sum256([]byte(secret))
	return hex.EncodeToString(sum[:])
}

func randomBytes(n int) []byte {
	b := make([]byte, n)
	rand.Read(b) // never fails
	return b
}
