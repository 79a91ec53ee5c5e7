package exitcode_test

import (
	"testing"

	"github.com/llmsandbox/llmsandbox"
	"github.com/llmsandbox/llmsandbox/internal/exitcode"
)

func TestOf(t *testing.T) {
	for _, c := range []struct {
		res  llmsandbox.Result
		want int
	}{
		{llmsandbox.Result{Status: llmsandbox.StatusError, ExitCode: 7}, 7},
		{llmsandbox.Result{Status: llmsandbox.StatusTimeout, ExitCode: -1, Signal: "SIGKILL"}, 124},
		{llmsandbox.Result{Status: llmsandbox.StatusRefused, ExitCode: -1}, 126},
		{llmsandbox.Result{Status: llmsandbox.StatusOutOfMemory, ExitCode: -1, Signal: "SIGKILL"}, 137},
		{llmsandbox.Result{Status: llmsandbox.StatusOutOfMemory, ExitCode: 7}, 137},
		{llmsandbox.Result{Status: llmsandbox.StatusOutputLimit, ExitCode: -1}, 153},
		{llmsandbox.Result{Status: llmsandbox.StatusKilled, ExitCode: -1, Signal: "SIGSEGV"}, 139},
		{llmsandbox.Result{Status: llmsandbox.StatusSetupFailed, ExitCode: -1}, 125},
		{llmsandbox.Result{Status: llmsandbox.StatusLost, ExitCode: -1}, 125},
		{llmsandbox.Result{Status: llmsandbox.StatusOK, ExitCode: -1}, 125}, // without an exit code success was not observed
	} {
		if got := exitcode.Of(c.res.Status, c.res.ExitCode, c.res.Signal); got != c.want {
			t.Errorf("%s: %d, want %d", c.res.Status, got, c.want)
		}
	}
}
