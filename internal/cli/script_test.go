package cli_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/llmsandbox/llmsandbox/internal/cli"
	"github.com/llmsandbox/llmsandbox/internal/cli/cluster"
)

func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){
		"llmsandbox":            func() { os.Exit(cli.Main(nil)) },
		"llmsandbox-kubernetes": func() { os.Exit(cli.Main(cluster.Backend{})) },
		"deaf":                  cli.Deaf,
	})
}

// endWaiting ends what still waits when a script has ended.
var endWaiting = func(state string) error { return nil }

// TestScripts runs the command as its users do. Each script has a state directory of
// its own, so that it sees no sandboxes but its own.
func TestScripts(t *testing.T) {
	examples, err := filepath.Abs("../../examples")
	if err != nil {
		t.Fatal(err)
	}
	testscript.Run(t, testscript.Params{
		Dir:                 "testdata/script",
		RequireExplicitExec: true,
		// Its own directory stays behind when only some of the scripts are run.
		WorkdirRoot: t.TempDir(),
		Setup: func(env *testscript.Env) error {
			// A socket's path is short, a test's directory is not.
			state, err := os.MkdirTemp("", "lsb")
			if err != nil {
				return err
			}
			env.Defer(func() {
				if err := endWaiting(state); err != nil {
					t.Errorf("end the sandboxes that wait in %s: %v", state, err)
				}
				_ = os.RemoveAll(state)
			})
			home, err := os.UserHomeDir()
			if err != nil {
				return err
			}
			env.Setenv("LLMSANDBOX_STATE_DIR", state)
			env.Setenv("LLMSANDBOX_CONFIG_DIR", filepath.Join(env.WorkDir, "no-config"))
			env.Setenv("LLMSANDBOX_CACHE_DIR", os.Getenv("LLMSANDBOX_CACHE_DIR"))
			env.Setenv("HOME", home) // toolchains live there
			env.Setenv("EXAMPLES", examples)
			command, err := exec.LookPath("llmsandbox")
			if err != nil {
				return err
			}
			env.Setenv("COMMAND", command)
			return nil
		},
	})
}
