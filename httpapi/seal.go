package httpapi

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/hkdf"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"time"

	"github.com/llmsandbox/llmsandbox"
)

// secretSize is the least length of Config.Secret, in bytes.
const secretSize = 32

// A sealer makes tokens that have a value and an end, and that nobody without its secret can read or make.
type sealer struct{ aead cipher.AEAD }

// newSealer returns the sealer of a secret; nil: one whose tokens end with it.
func newSealer(secret []byte) (sealer, error) {
	if secret == nil {
		secret = make([]byte, secretSize)
		rand.Read(secret) // never fails
	}
	if len(secret) < secretSize {
		return sealer{}, fmt.Errorf("Config.Secret has %d bytes: %w: use at least %d random ones", len(secret), llmsandbox.ErrInvalid, secretSize)
	}
	key, err := hkdf.Key(sha256.New, secret, nil, "llmsandbox tokens 1", 32)
	if err != nil {
		return sealer{}, err
	}
	block, err := aes.NewCipher(key)
	if err != nil {
		return sealer{}, err
	}
	aead, err := cipher.NewGCMWithRandomNonce(block)
	return sealer{aead}, err
}

// A sealed is the content of a token.
type sealed struct {
	End   int64 `json:"end"` // in milliseconds since 1970
	Value any   `json:"value"`
}

// seal makes a token for a purpose, which is good until end.
func (s sealer) seal(purpose string, end time.Time, v any) (string, error) {
	text, err := json.Marshal(sealed{end.UnixMilli(), v})
	if err != nil {
		return "", err
	}
	return base64.RawURLEncoding.EncodeToString(s.aead.Seal(nil, nil, text, []byte(purpose))), nil
}

// unseal reads the value of a token into what v points to. It reports whether a sealer with this secret has made it for that purpose and its end is still to come.
func (s sealer) unseal(purpose, token string, v any) (end time.Time, ok bool) {
	data, err := base64.RawURLEncoding.DecodeString(token)
	if err != nil || base64.RawURLEncoding.EncodeToString(data) != token { // it has one form
		return time.Time{}, false
	}
	text, err := s.aead.Open(nil, nil, data, []byte(purpose))
	if err != nil {
		return time.Time{}, false
	}
	in := sealed{Value: v}
	err = json.Unmarshal(text, &in)
	end = time.UnixMilli(in.End)
	return end, err == nil && time.Now().Before(end)
}
