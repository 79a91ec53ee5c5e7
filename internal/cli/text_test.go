package cli

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/llmsandbox/llmsandbox"
)

func TestTextLiteral(t *testing.T) {
	const in = "h\xc3\xa9\xff\xe2\x82<\"\n\ufffd"
	for mode, want := range map[string]string{
		textReplace: `"hé` + "\ufffd\ufffd\ufffd" + `<\"\n` + "\ufffd\"", textIgnore: `"hé<\"\n` + "\ufffd\"",
		textBackslash: `"hé\\xff\\xe2\\x82<\"\n` + "\ufffd\"", textSurrogateEscape: `"hé\udcff\udce2\udc82<\"\n` + "\ufffd\"",
	} {
		want = strings.ReplaceAll(want, `\u00e9`, "é")
		if got, err := textLiteral(in, mode); got != want || err != nil {
			t.Errorf("%s: got %s, %v; want %s", mode, got, err, want)
		}
	}
	if _, err := textLiteral(in, textStrict); !errors.Is(err, errNotText) || !strings.Contains(err.Error(), "byte 0xff at offset 3") {
		t.Errorf("strict: %v, want errNotText and the byte", err)
	}
	if got, err := textLiteral("plain", textStrict); got != `"plain"` || err != nil {
		t.Errorf("strict: got %s, %v; want \"plain\"", got, err)
	}
	if err := checkTextErrors("guess"); !errors.Is(err, llmsandbox.ErrInvalid) {
		t.Errorf("unknown mode: %v, want ErrInvalid", err)
	}
}

// Whatever a program writes, the result is one JSON value, and what is text in it is kept.
func FuzzTextLiteral(f *testing.F) {
	for _, s := range []string{"", "plain", "h\xff", "\xed\xb2\x80", "€\xe2\x82", "\xf0\x9f\x8e\x89", "\"}", "x\"", "\u2028<"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		for _, mode := range []string{textReplace, textIgnore, textBackslash, textSurrogateEscape} {
			var out strings.Builder
			var back struct{ Stdout, Stderr string }
			if err := writeResult(&out, llmsandbox.Result{Stdout: s, Stderr: "x"}, mode, false, nil); err != nil {
				t.Fatalf("%s of %q: %v", mode, s, err)
			}
			if err := json.Unmarshal([]byte(out.String()), &back); err != nil || back.Stderr != "x" {
				t.Fatalf("%s of %q: %v in %s, want no error, Stderr = \"x\"", mode, s, err, out.String())
			}
			if want := strings.ToValidUTF8(s, ""); mode == textIgnore && back.Stdout != want {
				t.Errorf("%s of %q: got %q, want %q", mode, s, back.Stdout, want)
			}
		}
	})
}
