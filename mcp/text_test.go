package mcp

import (
	"strings"
	"testing"
	"time"
	"unicode"
	"unicode/utf8"
)

func TestClean(t *testing.T) {
	for in, want := range map[string]string{
		"a\r\nb\rc":           "a\nb\nc",
		"safe\rsudo":          "safe\nsudo",
		"a\bb":                "ab",
		"\x1b[31mred\x1b[0m":  "red",
		"❤\ufe0f":             "❤\ufe0f",
		"1\ufe0e\ufe0f\ufe0e": "1\ufe0e",
		"h\U000e0101i\ufe05":  "hi",
		"a\u3164b\u00adc":     "abc",
		"\xff\xfe":            "\ufffd\ufffd",
	} {
		if got := clean(in); got != want {
			t.Errorf("%q: %q, want %q", in, got, want)
		}
	}
}

func TestShorten(t *testing.T) {
	if s, cut := shorten("short", 5); s != "short" || cut != 0 {
		t.Errorf("%q, %d", s, cut)
	}
	s, cut := shorten(strings.Repeat("é", 100), 11)
	if want := "éé\n[... 190 bytes left out ...]\nééé"; s != want || cut != 190 {
		t.Errorf("%q, %d", s, cut)
	}
}

func TestNumbersAreWrittenOut(t *testing.T) {
	for got, want := range map[string]string{
		count(1, "byte"): "1 byte", count(0, "byte"): "0 bytes", count(1.0, "CPU"): "1 CPU", count(0.5, "CPU"): "0.5 CPUs",
		span(5 * time.Minute): "5 minutes", span(time.Minute): "1 minute", span(90 * time.Second): "90 seconds",
		span(time.Second): "1 second", span(1500 * time.Millisecond): "1.5s",
	} {
		if got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

func FuzzClean(f *testing.F) {
	for _, seed := range []string{"", "a\r\n\r\rb", "\x1b]0;t\x07x", "\u202e\ufe0f\ufe0f", "\xc3", "a\x00\u009b1mb", strings.Repeat("é", 50)} {
		f.Add(seed, 10)
	}
	f.Fuzz(func(t *testing.T, s string, most int) {
		got := clean(s)
		if !utf8.ValidString(got) || clean(got) != got {
			t.Fatalf("%q: %q, then %q", s, got, clean(got))
		}
		for _, r := range got {
			if unicode.IsControl(r) && r != '\n' && r != '\t' {
				t.Fatalf("%q: %q is left", s, r)
			}
		}
		most = max(most%1000, 0)
		short, cut := shorten(got, most)
		if !utf8.ValidString(short) || cut < 0 || len(short) > most+60 || (cut == 0) != (len(got) <= most) {
			t.Fatalf("%q at %d: %q, %d", got, most, short, cut)
		}
		if strings.Contains(line(s), "\n") {
			t.Fatalf("%q is no line", line(s))
		}
	})
}
