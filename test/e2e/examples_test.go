package e2e

import (
	"os/exec"
	"strings"
	"testing"
)

// TestExamples compiles and runs the programs below examples.
func TestExamples(t *testing.T) {
	requireGo(t)
	for name, want := range map[string]string{
		"hello":  "hello\n",
		"pool":   "0\n1\n4\n9\n16\n25\n",
		"stream": "step 0\nstep 1\nstep 2\nstatus: error\n",
	} {
		t.Run(name, func(t *testing.T) {
			cmd := exec.CommandContext(testContext(t), "go", "run", "./examples/"+name)
			cmd.Dir = "../.."
			var stderr strings.Builder
			cmd.Stderr = &stderr
			out, err := cmd.Output()
			if err != nil || string(out) != want {
				t.Errorf("%v: %q, want %q\n%s", err, out, want, stderr.String())
			}
		})
	}
}

// requireGo skips where only a test binary was brought, as for the ordinary user
// in CI: the root's run compiles the examples.
func requireGo(t *testing.T) {
	t.Helper()
	if err := exec.Command("go", "list", "../../examples/hello").Run(); err != nil {
		t.Skip("the module's source is not here: only its test binary was brought")
	}
}
