package llmsandbox

import (
	"errors"
	"testing"
	"unicode/utf8"
)

func TestDecodeText(t *testing.T) {
	const in = "h\xc3\xa9\xff\xe2\x82x"
	for mode, want := range map[TextErrors]string{
		TextReplace: "hé\ufffd\ufffd\ufffdx", TextIgnore: "héx", TextBackslash: `hé\xff\xe2\x82x`,
	} {
		if got, err := DecodeText(in, mode); got != want || err != nil {
			t.Errorf("%s: %q, %v, want %q", mode, got, err, want)
		}
	}
	if _, err := DecodeText(in, TextStrict); !errors.Is(err, ErrDecode) {
		t.Errorf("strict: %v, want ErrDecode", err)
	}
	if got, err := DecodeText("plain", TextStrict); got != "plain" || err != nil {
		t.Errorf("strict on text: %q, %v", got, err)
	}
	if _, err := DecodeText("x", "guess"); !errors.Is(err, ErrInvalid) {
		t.Errorf("unknown mode: %v, want ErrInvalid", err)
	}
}

func FuzzDecodeText(f *testing.F) {
	for _, s := range []string{"", "plain", "h\xff", "\xed\xb2\x80", "€\xe2\x82", "\xf0\x9f\x8e\x89"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		for _, mode := range []TextErrors{TextReplace, TextIgnore, TextBackslash} {
			if got, err := DecodeText(s, mode); err != nil || !utf8.ValidString(got) {
				t.Errorf("DecodeText(%q, %s) = %q, %v", s, mode, got, err)
			}
		}
		escaped, err := DecodeText(s, TextSurrogateEscape)
		if err != nil || EncodeText(escaped) != s {
			t.Errorf("%q becomes %q and back %q, %v", s, escaped, EncodeText(escaped), err)
		}
	})
}
