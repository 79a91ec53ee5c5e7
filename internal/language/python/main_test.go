package python

import (
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
)

// home is where libraries keep what they compute once, such as the list of fonts.
var home string

func TestMain(m *testing.M) {
	var err error
	if home, err = os.MkdirTemp("", "capture-home-"); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	code := m.Run()
	if err := os.RemoveAll(home); err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

// interpreters are a Python and all other versions of it in the PATH.
func interpreters(t *testing.T) []string {
	found := []string{interpreter(t)}
	for minor := 7; minor < 20; minor++ {
		// What is in the PATH may be a script that chooses.
		python, err := exec.Command(fmt.Sprintf("python3.%d", minor), "-c", "import sys; print(sys.executable)").Output()
		if err == nil {
			found = append(found, strings.TrimSpace(string(python)))
		}
	}
	return found
}

// interpreter is a Python that has the modules. Where there must be one, none is a failure.
func interpreter(t *testing.T, modules ...string) string {
	t.Helper()
	for _, python := range []string{"/usr/bin/python3", "python3"} {
		args := []string{"-c", "import importlib.util, sys\nsys.exit(any(importlib.util.find_spec(m) is None for m in sys.argv[1:]))"}
		if exec.Command(python, append(args, modules...)...).Run() == nil {
			return python
		}
	}
	if os.Getenv("LLMSANDBOX_REQUIRE") != "" {
		t.Fatalf("there is no Python with %v: see scripts/test-deps", modules)
	}
	t.Skipf("there is no Python with %v", modules)
	return ""
}
