package store

import (
	"strings"
	"testing"
)

// What is taken for a secret has the form of one, and is all of it.
func FuzzParseSecret(f *testing.F) {
	_, secret := newSecret()
	for _, s := range []string{secret, "", "lsb_", "lsb_abcdefgh", strings.ToUpper(secret), secret + "a", secret[:len(secret)-1] + "\xff", strings.Repeat("_", secretLen), secret[:12] + "a" + secret[13:],
		secretPrefix + strings.Repeat("é", 31)} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		id, ok := parseSecret(s)
		if !ok {
			return
		}
		random, whole := strings.CutPrefix(s, "lsb_"+id+"_")
		if !whole || len(id) != 8 || len(random) != 52 || strings.Trim(id+random, "abcdefghijklmnopqrstuvwxyz234567") != "" {
			t.Errorf("%q: got id %q, want it refused", s, id)
		}
	})
}

func TestNewSecret(t *testing.T) {
	seen := map[string]bool{}
	for range 100 {
		id, secret := newSecret()
		if got, ok := parseSecret(secret); !ok || got != id {
			t.Errorf("%q: got id %q, %v, want %q", secret, got, ok, id)
		}
		random := secret[len(secret)-randomLen:]
		if seen[id] || seen[random] {
			t.Errorf("%q: got its id or random part twice, want new ones", secret)
		}
		seen[id], seen[random] = true, true
	}
}
