package e2e

import (
	"errors"
	"testing"

	"github.com/llmsandbox/llmsandbox"
	"github.com/llmsandbox/llmsandbox/backend/local"
	"github.com/llmsandbox/llmsandbox/pool"
)

// TestRun: a sandbox for one run, which leaves nothing.
func TestRun(t *testing.T) {
	state := t.TempDir()
	opts := llmsandbox.Options{Backend: local.New(&local.Options{StateDir: state}), Language: "bash", BestEffort: true}
	res, err := llmsandbox.Run(testContext(t), "echo hi; exit 3", &opts)
	if err != nil {
		t.Fatal(err)
	}
	wantExit(t, res, 3)
	wantStdout(t, res, "hi\n")
	if infos, err := llmsandbox.List(testContext(t), opts.Backend); err != nil || len(infos) > 0 {
		t.Errorf("left: %v, %v, want none", infos, err)
	}
	opts.Language = "cobol"
	res, err = llmsandbox.Run(testContext(t), "", &opts)
	if !errors.Is(err, llmsandbox.ErrUnknownLanguage) || res.Status != llmsandbox.StatusSetupFailed || res.ExitCode != -1 || res.Reason != err.Error() {
		t.Errorf("%v, %v, want ErrUnknownLanguage, StatusSetupFailed, ExitCode = -1", res, err)
	}
}

// TestPoolRun: runs of two languages in sandboxes of a pool, which are released.
func TestPoolRun(t *testing.T) {
	p, err := pool.New(&pool.Config{Options: llmsandbox.Options{Language: "bash", BestEffort: true}, Max: 2, NoPrewarm: true})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		code, want string
		opts       *llmsandbox.RunOptions
	}{
		{"echo $((6*7))", "42\n", nil},
		{"print(len('four'))", "4\n", &llmsandbox.RunOptions{Language: "python"}},
		{"echo $1", "arg\n", &llmsandbox.RunOptions{Args: []string{"arg"}}},
	} {
		res, err := p.Run(testContext(t), c.code, c.opts)
		if err != nil {
			t.Fatal(err)
		}
		wantExit(t, res, 0)
		wantStdout(t, res, c.want)
	}
	if s := p.Stats(); s.InUse != 0 {
		t.Errorf("%d in use, want 0", s.InUse)
	}
	if err := p.Close(testContext(t)); err != nil {
		t.Error(err)
	}
}
