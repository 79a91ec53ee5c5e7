package language

import (
	"os/exec"
	"testing"
)

// TestQuote has a shell read what is quoted: words stay apart, and nothing in them is the
// shell's.
func TestQuote(t *testing.T) {
	sh, err := exec.LookPath("sh")
	if err != nil {
		t.Skip("there is no shell here")
	}
	words := []string{"plain", "", "two words", "it's", `a"b\c`, "$HOME `id` $(id)", "line\nbreak", "-n", "*;&|#~"}
	out, err := exec.Command(sh, "-c", `printf '<%s>' `+Quote(words...)).CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	want := ""
	for _, w := range words {
		want += "<" + w + ">"
	}
	if string(out) != want {
		t.Errorf("got %q, want %q", out, want)
	}
}
