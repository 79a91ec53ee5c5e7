package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"go.uber.org/goleak"

	"github.com/llmsandbox/llmsandbox/backend/backendtest"
	"github.com/llmsandbox/llmsandbox/backend/local"
)

func TestMain(m *testing.M) {
	beKilled()
	backendtest.Child(func(dir string) (backendtest.Config, error) { return conformance(dir), nil })
	code := m.Run()
	err := goleak.Find()
	for range 30 { // the disk of a sandbox is given back behind its end, which takes seconds on a busy machine
		if err == nil {
			break
		}
		err = goleak.Find()
	}
	if err != nil && code == 0 {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

// conformance is the suite's view of the local backend with a state directory of its own. Its
// caches are the user's, since preparing them takes long.
func conformance(dir string) backendtest.Config {
	return backendtest.Config{
		Backend: local.New(&local.Options{StateDir: filepath.Join(dir, "state")}),
		Address: dir,
		Outside: &outside{dir: dir},
	}
}

func TestConformance(t *testing.T) {
	backendtest.Run(t, conformance(t.TempDir()))
}
