package termsafe

import (
	"bytes"
	"errors"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"
)

func TestString(t *testing.T) {
	for name, c := range map[string]struct{ in, want string }{
		"plain":                {"héllo\tworld\r\n", "héllo\tworld\r\n"},
		"colour":               {"a\x1b[31mred\x1b[0mb", "aredb"},
		"title":                {"\x1b]0;owned\x07ok", "ok"},
		"clipboard":            {"\x1b]52;c;cm0gLXJm\x1b\\ok", "ok"},
		"hyperlink":            {"\x1b]8;;http://x\x1b\\text\x1b]8;;\x1b\\", "text"},
		"device string":        {"\x1bP1$tx\x1b\\ok", "ok"},
		"C1 CSI":               {"a\u009b2Jb", "ab"},
		"C1 OSC":               {"a\u009d0;x\u009cb", "ab"},
		"raw C1 byte":          {"a\x9bb", "a\ufffdb"},
		"charset":              {"\x1b(0lqk", "lqk"},
		"bell and NUL":         {"a\x07\x00b", "ab"},
		"bidi":                 {"a\u202eb\u2066c", "abc"},
		"zero width":           {"a\u200bb\ufeff", "ab"},
		"emoji joiner":         {"👩\u200d🚀", "👩\u200d🚀"},
		"tags":                 {"x\U000e0041y", "xy"},
		"variants":             {"h\U000e0101i\ufe05 \u180bm", "hi m"},
		"fillers":              {"a\u3164b\u115f\u1160\uffa0c\u00ad\u034f\u17b4\u17b5", "abc"},
		"unassigned":           {"a\u2065\ufff0\U000e0080\U000e0fffb", "ab"},
		"shorthand, music":     {"a\U0001bca0\U0001d173b", "ab"},
		"emoji picture":        {"❤\ufe0f 1\ufe0f\u20e3 ☎\ufe0e", "❤\ufe0f 1\ufe0f\u20e3 ☎\ufe0e"},
		"emoji sequence":       {"🏳\ufe0f\u200d⚧\ufe0f", "🏳\ufe0f\u200d⚧\ufe0f"},
		"ligature":             {"ක්\u200dය", "ක්\u200dය"},
		"row of selectors":     {"❤\ufe0e\ufe0f\ufe0e", "❤\ufe0e"},
		"row of joiners":       {"👩\u200d\u200d\ufe0f\u200d🚀", "👩\u200d🚀"},
		"selected letters":     {"a\ufe0fb\ufe0ec", "abc"},
		"selected nothing":     {"\ufe0f \ufe0f\n\ufe0e\b\u200d", " \n\b"},
		"stray byte selected":  {"\xff\ufe0f\ufe0f", "\ufffd\ufe0f"},
		"escape in CSI":        {"\x1b[3\x1b[1mok", "ok"},
		"newline ends CSI":     {"\x1b[12\nok", "ok"},
		"unended string":       {"\x1b]0;" + strings.Repeat("x", maxSequence) + "ok", "xxok"},
		"cut character at end": {"a\xe2\x82", "a\ufffd"},
	} {
		if got := String(c.in); got != c.want {
			t.Errorf("%s: String(%q) = %q, want %q", name, c.in, got, c.want)
		}
	}
}

func TestSplitWrites(t *testing.T) {
	in := "a€\x1b]52;c;AAAA\x1b\\b\x1b[1;31mc👩\u200d\u200dd\u202ee❤\ufe0f\x1b[m\ufe0f"
	want := String(in)
	for i := range len(in) {
		var b bytes.Buffer
		w := Writer{W: &b}
		for _, part := range []string{in[:i], in[i:]} {
			if n, err := w.Write([]byte(part)); n != len(part) || err != nil {
				t.Fatalf("Write = %d, %v, want n = %d, no error", n, err, len(part))
			}
		}
		if b.String() != want {
			t.Errorf("split at %d: %q, want %q", i, b.String(), want)
		}
	}
}

type failing struct{}

func (failing) Write([]byte) (int, error) { return 0, errors.New("full") }

func TestWriteFails(t *testing.T) {
	w := Writer{W: failing{}}
	if _, err := w.Write([]byte("x")); err == nil {
		t.Error("the writer's failure was swallowed: got no error, want an error")
	}
}

func FuzzString(f *testing.F) {
	for _, s := range []string{"plain", "\x1b[31m", "\x1b]52;c;\x1b\\", "\u009b2J", "\x9b", "\xe2\x82", "\x1bP\x1b\\", "❤\ufe0f\ufe0f", "a\u200d\ufe0f\u200d", "\U000e0101\u3164"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		got := String(s)
		if !utf8.ValidString(got) {
			t.Fatalf("String(%q) = %q is not UTF-8, want utf8.ValidString(got) = true", s, got)
		}
		var before rune
		for _, r := range got {
			if deceptive(r) || shapeless(r) && shapeless(before) && r != joiner {
				t.Fatalf("String(%q) = %q holds %U behind %U, want deceptive(r) = false, shapeless(r) = false or shapeless(before) = false or r = %U", s, got, r, before, joiner)
			}
			before = r
			if unicode.IsControl(r) && !strings.ContainsRune("\n\t\r\b", r) {
				t.Fatalf("String(%q) = %q holds %U, want no control character but tab, newline, return, backspace", s, got, r)
			}
		}
		if again := String(got); again != got {
			t.Fatalf("String(%q) = %q, again %q", s, got, again)
		}
	})
}
