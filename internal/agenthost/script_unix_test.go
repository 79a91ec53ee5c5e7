//go:build unix

package agenthost

import (
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// What is sent through a shell is there when it has come whole, and else not at all.
func TestTakeScript(t *testing.T) {
	const content = "#!/bin/sh\necho it runs\n"
	for _, c := range []struct {
		name string
		size int
		ok   bool
	}{{"whole", len(content), true}, {"cut", len(content) + 1, false}} {
		t.Run(c.name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "new", "folder")
			cmd := exec.Command("/bin/sh", "-c", takeScript, "sh", dir, "agent", "555", strconv.Itoa(c.size))
			cmd.Stdin = strings.NewReader(content)
			if out, err := cmd.CombinedOutput(); (err == nil) != c.ok {
				t.Fatalf("the shell ended with %v: %s, want success = %v", err, out, c.ok)
			}
			out, err := exec.Command(filepath.Join(dir, "agent")).Output()
			if c.ok && (err != nil || string(out) != "it runs\n") {
				t.Errorf("the received program prints %q (%v), want \"it runs\\n\"", out, err)
			}
			if left, err := os.ReadDir(dir); !c.ok && (err != nil || len(left) > 0) {
				t.Errorf("after a failure there is %v (%v), want no file", left, err)
			}
		})
	}
}
