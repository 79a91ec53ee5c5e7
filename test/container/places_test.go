//go:build linux

package container

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

const root = "../.."

// attack prints what it reaches of what is not its sandbox's.
const attack = `
import os, signal, socket
def reach(what, f):
    try:
        f()
    except OSError:
        return
    print(what)
reach("the memory of process 1", lambda: open("/proc/1/mem", "rb"))
reach("the environment of process 1", lambda: open("/proc/1/environ").read())
reach("a file of the container", lambda: open("/var/lib/dpkg/status").read())
reach("a program of the container", lambda: open("/usr/local/bin/llmsandbox", "r+"))
reach("a kernel setting", lambda: open("/proc/sys/kernel/core_pattern", "w"))
reach("process 1", lambda: os.kill(1, signal.SIGKILL))
reach("the network", lambda: socket.create_connection(("192.0.2.1", 80), 1))
print("done")
`

// A place runs shell commands where the page says that sandboxes work.
type place struct {
	dir string
	env []string
}

// sh runs a script of the page, and returns what it prints.
func (p place) sh(t *testing.T, script string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), 5*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, "bash", "-euo", "pipefail", "-c", script)
	cmd.Dir, cmd.Env = p.dir, append(os.Environ(), p.env...)
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%s\n%v\n%s%s", script, err, out, stderr.String())
	}
	return string(out)
}

// holds checks that code is isolated where a prefix of a command leads.
func (p place) holds(t *testing.T, isolation, prefix string) {
	t.Helper()
	var d struct {
		Isolation string
		Works     bool
	}
	out := p.sh(t, prefix+" llmsandbox doctor --json")
	if err := json.Unmarshal([]byte(out), &d); err != nil || !d.Works || d.Isolation != isolation {
		t.Errorf("%s: doctor says %v, %s\nwant a sandbox that works with the isolation %s", prefix, err, out, isolation)
	}
	if out := p.sh(t, fmt.Sprintf("%s llmsandbox run --quiet -c '%s'", prefix, attack)); out != "done\n" {
		t.Errorf("%s: code reaches\n%swant nothing but \"done\\n\"", prefix, out)
	}
}

// section is the code in a language that a section of docs/containers.md shows.
func section(t *testing.T, heading, language string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, "docs", "containers.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, part, _ := strings.Cut(string(text), "\n## "+heading+"\n")
	part, _, _ = strings.Cut(part, "\n## ")
	_, code, begins := strings.Cut(part, "\n```"+language+"\n")
	code, _, ends := strings.Cut(code, "```\n")
	if !begins || !ends {
		t.Fatalf("the page has no %s below %q, want some", language, heading)
	}
	return code
}
