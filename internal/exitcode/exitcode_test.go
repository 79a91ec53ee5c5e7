package exitcode_test

import (
	"testing"

	"github.com/llmsandbox/llmsandbox"
	"github.com/llmsandbox/llmsandbox/internal/exitcode"
)

func TestOf(t *testing.T) {
	seven := 7
	for _, c := range []struct {
		res  llmsandbox.Result
		want int
	}{
		{llmsandbox.Result{Status: llmsandbox.StatusError, ExitCode: &seven}, 7},
		{llmsandbox.Result{Status: llmsandbox.StatusTimeout, Signal: "SIGKILL"}, 124},
		{llmsandbox.Result{Status: llmsandbox.StatusRefused}, 126},
		{llmsandbox.Result{Status: llmsandbox.StatusOutOfMemory, Signal: "SIGKILL"}, 137},
		{llmsandbox.Result{Status: llmsandbox.StatusOutOfMemory, ExitCode: &seven}, 137},
		{llmsandbox.Result{Status: llmsandbox.StatusOutputLimit}, 153},
		{llmsandbox.Result{Status: llmsandbox.StatusKilled, Signal: "SIGSEGV"}, 139},
		{llmsandbox.Result{Status: llmsandbox.StatusSetupFailed}, 125},
		{llmsandbox.Result{Status: llmsandbox.StatusLost}, 125},
		{llmsandbox.Result{Status: llmsandbox.StatusOK}, 125}, // without an exit code success was not observed
	} {
		if got := exitcode.Of(c.res.Status, c.res.ExitCode, c.res.Signal); got != c.want {
			t.Errorf("%s: %d, want %d", c.res.Status, got, c.want)
		}
	}
}
