//go:build unix

package kerneltest

import (
	"os"
	"os/exec"
	"testing"

	"github.com/llmsandbox/llmsandbox/internal/language"
)

// Missing is a program of the language that is not there, or "".
func Missing(lang *language.Language, extra ...string) string {
	for _, alternatives := range append(lang.Programs[:len(lang.Programs):len(lang.Programs)], extra) {
		if _, err := exec.LookPath(program(alternatives...)); err != nil && len(alternatives) > 0 {
			return alternatives[0]
		}
	}
	return ""
}

func program(names ...string) string {
	for _, n := range names {
		if _, err := exec.LookPath(n); err == nil {
			return n
		}
	}
	if len(names) == 0 {
		return ""
	}
	return names[0]
}

// Need skips a test where a program is missing; where nothing may be skipped, it fails.
func Need(t testing.TB, lang *language.Language, extra ...string) {
	t.Helper()
	if p := Missing(lang, extra...); p != "" {
		if os.Getenv("LLMSANDBOX_REQUIRE") != "" {
			t.Fatalf("%s is not here", p)
		}
		t.Skipf("%s is not here", p)
	}
}
