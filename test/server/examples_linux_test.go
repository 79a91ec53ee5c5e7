package server

import (
	"context"
	"os/exec"
	"strings"
	"testing"
	"time"
)

// TestExamples: the examples of the server do what they say.
func TestExamples(t *testing.T) {
	s := newMachine(t).start()
	for name, want := range map[string]string{"go run ./examples/server": "[1] \n[2] 42\n", "examples/server/curl.sh": `"text/plain":"42"`} {
		ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
		defer cancel()
		words := strings.Fields(name)
		cmd := exec.CommandContext(ctx, words[0], words[1:]...)
		cmd.Dir = "../.."
		cmd.Env = append(s.env, "SANDBOX_URL="+s.address, "SANDBOX_KEY="+s.key)
		if out, err := cmd.CombinedOutput(); err != nil || !strings.Contains(string(out), want) {
			t.Errorf("%s: %v\n%s\nwant %s", name, err, out, want)
		}
	}
}
