package collect

import (
	"strings"
	"testing"
	"unicode/utf8"
)

func TestFileName(t *testing.T) {
	for in, want := range map[string]string{
		"plot.png":                        "plot.png",
		"/sandbox/out/a b.csv":            "a b.csv",
		`C:\out\x.svg`:                    "x.svg",
		"../../etc/passwd":                "passwd",
		"..":                              "artifact",
		"":                                "artifact",
		".hidden.png":                     "hidden.png",
		"-rf":                             "rf",
		"a\x1b[2J\n.png":                  "a_[2J_.png",
		"\xff\xfe.png":                    "_.png",
		"gnp.\u202eexe":                   "gnp._exe",
		"con.txt":                         "artifact.txt",
		"LPT1":                            "artifact",
		"a:b|c?.png":                      "a_b_c_.png",
		"dots...":                         "dots",
		strings.Repeat("n", 300) + ".png": strings.Repeat("n", 196) + ".png",
		"grün.png":                        "grün.png",
		"- .bashrc":                       "bashrc",
		". .\x94L\x8f\xe8\x13\xea\x95":    "_L___",
		"\u00a0-\u3000.ssh":               "ssh",
		"\ufeff.\u200d-rf":                "rf",
		"com1 .txt":                       "artifact.txt",
		"LPT².txt":                        "artifact.txt",
		"con." + strings.Repeat("n", 196): "artifact",
		strings.Repeat("n", 199) + ". x" + strings.Repeat("n", 99):  strings.Repeat("n", 199),
		"aux" + strings.Repeat(" ", 300) + strings.Repeat("n", 300): "artifact",
	} {
		if got := fileName(in); got != want {
			t.Errorf("%q becomes %q, want %q", in, got, want)
		}
	}
}

func TestLine(t *testing.T) {
	for in, want := range map[string]string{
		" Sales\nof 2024 ":       "Sales of 2024",
		"\x1b]0;owned\x07title":  "]0;ownedtitle",
		"a\u202eb\xff":           "ab\uFFFD",
		strings.Repeat("é", 600): strings.Repeat("é", 499) + "…",
	} {
		if got := line(in); got != want {
			t.Errorf("%q becomes %q, want %q", in, got, want)
		}
	}
}

func FuzzFileName(f *testing.F) {
	for _, s := range []string{"", "a/b", "..", "con", ". .", "\xff.\xff"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		got := fileName(s)
		if got == "" || got == "." || got == ".." || len(got) > maxName || !utf8.ValidString(got) || strings.ContainsAny(got, "/\\\x00\x1b\n:") ||
			strings.ContainsAny(got[:1], ".- ") || strings.TrimRight(got, ". ") != got || reserved(got) {
			t.Fatalf("%q becomes %q", s, got)
		}
		if again := fileName(got); again != got {
			t.Fatalf("%q becomes %q, which becomes %q", s, got, again)
		}
	})
}
