package httpapi

import (
	"bytes"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/llmsandbox/llmsandbox"
)

// TestSeal: a token is good for its purpose until its end, wherever the secret is known.
func TestSeal(t *testing.T) {
	secret := bytes.Repeat([]byte{1}, secretSize)
	sealerOf := func(secret []byte) sealer {
		t.Helper()
		s, err := newSealer(secret)
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	s := sealerOf(secret)
	sealed := func(end time.Time) string {
		t.Helper()
		token, err := s.seal("a", end, "value")
		if err != nil {
			t.Fatal(err)
		}
		return token
	}
	end := time.Now().Add(time.Hour).Truncate(time.Millisecond)
	good, over := sealed(end), sealed(time.Now())
	if strings.Contains(good, "value") || good == sealed(end) {
		t.Errorf("%s says what it is, or is as another", good)
	}
	changed := bytes.Clone(secret)
	changed[secretSize-1]++
	for name, c := range map[string]struct {
		by             sealer
		purpose, token string
		ok             bool
	}{
		"its own":        {s, "a", good, true},
		"same secret":    {sealerOf(secret), "a", good, true},
		"other secret":   {sealerOf(changed), "a", good, false},
		"longer secret":  {sealerOf(append(secret, 0)), "a", good, false},
		"no secret":      {sealerOf(nil), "a", good, false},
		"other purpose":  {s, "b", good, false},
		"no purpose":     {s, "", good, false},
		"over":           {s, "a", over, false},
		"not of a value": {s, "a", good[:len(good)-1], false},
	} {
		var value string
		got, ok := c.by.unseal(c.purpose, c.token, &value)
		if ok != c.ok || ok && (value != "value" || !got.Equal(end)) {
			t.Errorf("%s: %q until %v, %t, want %t", name, value, got, ok, c.ok)
		}
	}
	if _, err := New(&Config{Secret: secret[1:]}); !errors.Is(err, llmsandbox.ErrInvalid) {
		t.Errorf("a short secret: %v, want ErrInvalid", err)
	}
}
