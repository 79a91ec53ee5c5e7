package source

import (
	"bytes"
	"testing"
)

func TestClean(t *testing.T) {
	for in, want := range map[string]string{
		"\xef\xbb\xbfa":                 "a",
		"\xff\xfea\x00\x3d\xd8\x00\xde": "a😀",
		"\xfe\xff\x00a":                 "a",
		"a\r\nb\r\n":                    "a\nb\n",
		"a\r\nb\n":                      "a\r\nb\n",
		"a\rb\r\n":                      "a\rb\r\n",
		"a\x00b":                        "a\x00b",
		"":                              "",
	} {
		if got, err := Clean([]byte(in)); err != nil || string(got) != want {
			t.Errorf("Clean(%q) = %q, %v, want no error, got = %v", in, got, err, want)
		}
	}
	if _, err := Clean([]byte("\xff\xfea")); err == nil {
		t.Error("half a UTF-16 unit passed: got no error, want an error")
	}
}

func TestDedent(t *testing.T) {
	for in, want := range map[string]string{
		"  a\n\n    b\n  c\n": "a\n\n  b\nc\n",
		"\ta\n \n\tb":         "a\n \nb",
		"  a\nb":              "  a\nb",
		"  x = '''\nq\n  '''": "  x = '''\nq\n  '''",
		"  \n ":               "  \n ",
		"\ta\n  b":            "\ta\n  b",
	} {
		if got := Dedent([]byte(in)); string(got) != want {
			t.Errorf("Dedent(%q) = %q, want got = %v", in, got, want)
		}
	}
}

func FuzzClean(f *testing.F) {
	f.Add([]byte("\xff\xfea\x00"))
	f.Add([]byte("  a\r\n  b\r\n"))
	f.Fuzz(func(t *testing.T, code []byte) {
		clean, err := Clean(code)
		if err != nil {
			return
		}
		flat := Dedent(clean)
		if bytes.Count(flat, []byte("\n")) != bytes.Count(clean, []byte("\n")) {
			t.Errorf("%d lines, want %d", bytes.Count(flat, []byte("\n")), bytes.Count(clean, []byte("\n")))
		}
	})
}
