//go:build unix

package kubernetes

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// The shell that becomes the agent takes the token's line from stdin and nothing more.
func TestServeScript(t *testing.T) {
	dir := t.TempDir()
	agent := filepath.Join(dir, "agent with a space")
	script := "#!/bin/sh\nprintf '%s|' \"$" + envToken + "\" \"$@\"\ncat\n"
	if err := os.WriteFile(agent, []byte(script), 0o700); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("/bin/sh", "-c", serveScript, agent, "serve", "--stdio")
	cmd.Stdin = strings.NewReader("to ken\\\nthe stream\nitself")
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if want := "to ken\\|serve|--stdio|the stream\nitself"; err != nil || string(out) != want {
		t.Errorf("got %q (%v, %s), want %q", out, err, &stderr, want)
	}
}
