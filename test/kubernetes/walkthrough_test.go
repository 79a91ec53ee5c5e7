//go:build linux

package kubernetes

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/llmsandbox/llmsandbox/internal/testcluster"
	"github.com/llmsandbox/llmsandbox/internal/testcommand"
)

const root = "../.."

// A step is a block of commands of the walk-through, and what its page shows of their
// output: each of the lines is part of one.
type step struct {
	commands string
	shows    []string
}

// byTheTest are what the walk-through's reader does for a cluster, and the test itself has
// done for its own.
var byTheTest = []string{"make build cluster-up", "docker save llmsandbox/python:1 | test/cluster/load", "make cluster-down"}

// TestWalkthrough types what docs/kubernetes.md tells its readers to type.
func TestWalkthrough(t *testing.T) {
	beside(t)
	steps := readWalkthrough(t)
	c := testcluster.Start(t)
	c.Images(t)
	bin, err := testcommand.In(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	// kubectl is where make cluster-up says.
	kit := strings.TrimSpace(command(t, root, "test/cluster/build"))
	deploy, err := filepath.Abs(filepath.Join(root, "deploy"))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(deploy, filepath.Join(dir, "deploy")); err != nil {
		t.Fatal(err)
	}
	config := copyFile(t, c.Kubeconfig, filepath.Join(t.TempDir(), "kubeconfig")) // a step changes its namespace

	var script strings.Builder
	script.WriteString("set -euo pipefail\nexec 2>&1\n")
	const mark = "=== step "
	for i, s := range steps {
		fmt.Fprintf(&script, "echo '%s%d'\n%s\n", mark, i, s.commands)
	}
	cmd := exec.CommandContext(t.Context(), "bash", "-c", script.String())
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "KUBECONFIG="+config, "PATH="+strings.Join([]string{bin, kit, os.Getenv("PATH")}, ":"),
		"LLMSANDBOX_STATE_DIR="+t.TempDir(), "LLMSANDBOX_CACHE_DIR="+t.TempDir())
	t.Cleanup(func() {
		if t.Failed() { // else its last step has
			command(t, root, filepath.Join(kit, "kubectl"), "--kubeconfig", config, "delete", "-k", "deploy/base", "--ignore-not-found")
		}
	})
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Errorf("the commands end with %v; their output:\n%s", err, out)
	}
	said := strings.Split(string(out), mark)[1:]
	for i, text := range said {
		for _, want := range steps[i].shows {
			if !strings.Contains(text, want) {
				t.Errorf("the page shows %q after\n%s\nand they print\n%s", want, steps[i].commands, text)
			}
		}
	}
	if len(said) != len(steps) {
		t.Errorf("%d of %d steps were taken", len(said), len(steps))
	}
}

// TestExample runs the program of examples/kubernetes.
func TestExample(t *testing.T) {
	beside(t)
	c := testcluster.Start(t)
	c.Images(t)
	kubectl := filepath.Join(strings.TrimSpace(command(t, root, "test/cluster/build")), "kubectl")
	config := copyFile(t, c.Kubeconfig, filepath.Join(t.TempDir(), "kubeconfig"))
	command(t, root, kubectl, "--kubeconfig", config, "config", "set-context", "--current", "--namespace", c.Namespace(t))
	if got := command(t, root, "env", "KUBECONFIG="+config, "go", "run", "./examples/kubernetes"); got != "hello from a pod\n" {
		t.Errorf("it prints %q, want \"hello from a pod\\n\"", got)
	}
}

// readWalkthrough reads the steps of the page's last part.
func readWalkthrough(t *testing.T) (steps []step) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, "docs", "kubernetes.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, part, ok := strings.Cut(string(text), "\n## Walk-through\n")
	if !ok {
		t.Fatal("the page has no walk-through: ok = false, want true")
	}
	language, done := "", 0
	for line := range strings.Lines(part) {
		mark, fence := strings.CutPrefix(strings.TrimRight(line, "\n"), "```")
		switch {
		case fence && language == "":
			if language = mark; language == "sh" {
				steps = append(steps, step{})
			}
		case fence:
			language = ""
		case language == "sh" && slices.Contains(byTheTest, strings.TrimSpace(line)):
			done++
		case language == "sh":
			steps[len(steps)-1].commands += line
		case language == "text":
			last := &steps[len(steps)-1]
			last.shows = append(last.shows, strings.TrimSpace(line))
		}
	}
	if done != len(byTheTest) || len(steps) < 8 {
		t.Fatalf("%d steps, and %d of the %d lines that the test does itself", len(steps), done, len(byTheTest))
	}
	makefile, err := os.ReadFile(filepath.Join(root, "Makefile"))
	if err != nil {
		t.Fatal(err)
	}
	for _, target := range []string{"build", "cluster-up", "cluster-down"} {
		if !strings.Contains(string(makefile), "\n"+target+":") {
			t.Errorf("there is no make %s, want makefile containing %q", target, "\n"+target+":")
		}
	}
	return steps
}

// command runs a program, which dir may hold, to its end and returns what it prints.
func command(t *testing.T, dir string, argv ...string) string {
	t.Helper()
	cmd := exec.Command(argv[0], argv[1:]...)
	cmd.Dir = dir
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%s: %v\n%s%s", strings.Join(argv, " "), err, out, stderr.String())
	}
	return string(out)
}

func copyFile(t *testing.T, from, to string) string {
	t.Helper()
	data, err := os.ReadFile(from)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(to, data, 0o600); err != nil {
		t.Fatal(err)
	}
	return to
}
