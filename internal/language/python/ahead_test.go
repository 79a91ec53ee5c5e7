package python

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestSharedIsRefused: what all sandboxes of a zygote would share is found.
func TestSharedIsRefused(t *testing.T) {
	program, err := exec.LookPath("python3")
	if err != nil {
		if os.Getenv("LLMSANDBOX_REQUIRE") == "1" {
			t.Fatal(err)
		}
		t.Skip(err)
	}
	file := filepath.Join(t.TempDir(), "ahead.py")
	if err := os.WriteFile(file, forking, 0o600); err != nil {
		t.Fatal(err)
	}
	for code, want := range map[string]string{
		"":                        "None",
		"f = open('/dev/null')":   "a module has left a file open that all sandboxes would share: /dev/null",
		"m = mmap.mmap(-1, 4096)": "a module has mapped memory that all sandboxes would share: /dev/zero (deleted)",
		"m = mmap.mmap(-1, 4096, mmap.MAP_PRIVATE)": "None",
	} {
		out, err := exec.Command(program, "-S", "-c", "import mmap, os, sys\nos.closerange(3, 1000)\nwith open(sys.argv[1]) as f: exec(f.read())\nfor n in 3, 4: os.dup(0)\n"+code+"\nprint(shared())", file).CombinedOutput()
		if got := strings.TrimSpace(string(out)); err != nil || got != want {
			t.Errorf("%q: %q, %v, want %q", code, got, err, want)
		}
	}
}
