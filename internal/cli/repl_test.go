package cli

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func TestIncomplete(t *testing.T) {
	for _, c := range []struct {
		language, code string
		want           bool
	}{
		{"python", "x = 1", false}, {"python", "def f():", true}, {"python", "def f():\n    return 1", true},
		{"python", "def f():\n    return 1\n", false}, {"python", "f(1,", true}, {"python", "f(1,\n2)", false},
		{"python", "'('", false}, {"python", "x # (", false}, {"python", `x = \`, true}, {"python", "@d", true}, {"python", "'it\\'s ('", false},
		{"bash", "for i in 1 2; do", true}, {"bash", "for i in 1 2; do\necho $i\ndone", false}, {"bash", "case $x in a) ;; esac", false},
		{"ruby", "def f", true}, {"ruby", "def f\n1\nend", false}, {"javascript", "f(() => {", true}, {"javascript", "f(() => {\n})", false},
		{"java", "// {", false}, {"go", "func f() {", true},
	} {
		if got := incomplete(c.language, c.code); got != c.want {
			t.Errorf("%s %q: %v, want %v", c.language, c.code, got, c.want)
		}
	}
}

func TestSplitCells(t *testing.T) {
	got := splitCells("a\nb\n# %% second\n\n// %%\n c\n")
	if !slices.Equal(got, []string{"a\nb\n", " c\n"}) {
		t.Errorf("%q, want [\"a\\nb\\n\" \" c\\n\"]", got)
	}
}

func TestHistory(t *testing.T) {
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	h := loadHistory("python")
	for i := range maxHistory + 10 {
		h.Add(fmt.Sprint("line ", i))
	}
	h.Add(" ")
	h.Add(strings.Repeat("x", maxHistoryLine+1))
	h.silent = true
	h.Add("an answer")
	if err := h.save(); err != nil {
		t.Fatal(err)
	}
	h = loadHistory("python")
	if h.Len() != maxHistory || h.At(0) != fmt.Sprint("line ", maxHistory+9) {
		t.Errorf("%d lines, the newest %q, want Len = %d, h.At(0) = fmt.Sprint(\"line \", maxHistory+9)", h.Len(), h.At(0), maxHistory)
	}
	info, err := os.Stat(h.file)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v %v, want no error, Perm = 0o600", info, err)
	}
	if err := os.Truncate(h.file, maxHistory*maxHistoryLine+1); err != nil {
		t.Fatal(err)
	}
	if h := loadHistory("python"); h.Len() != 0 {
		t.Errorf("%d lines of a file that is too large, want 0", h.Len())
	}
	if h := loadHistory(filepath.Join("no", "such")); h.Len() != 0 {
		t.Errorf("%d lines of no file, want 0", h.Len())
	}
}

func TestMatchesAreSafe(t *testing.T) {
	got := printable([]string{"ok", "", "a\x1b[2J", "b\nc", "d\te", "ä", "\u202etxt"})
	if !slices.Equal(got, []string{"ok", "ä"}) {
		t.Errorf("%q, want [\"ok\" \"ä\"]", got)
	}
	if got := commonPrefix([]string{"zebrä", "zebrö"}); got != "zebr" {
		t.Errorf("%q, want \"zebr\"", got)
	}
}
