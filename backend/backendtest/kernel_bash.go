package backendtest

import (
	"testing"
	"time"

	"github.com/llmsandbox/llmsandbox"
)

func (s *suite) kernelOfBash(t *testing.T) {
	sb := s.shared(t)
	k := openKernel(t, sb, "bash", nil)
	cell(t, k, "x=20; add() { echo $((x + $1)); }; cd /", nil)
	wantNoKernelFiles(t, sb)
	if c := cell(t, k, "add 2; pwd; echo err >&2", nil); c.Stdout != "22\n/\n" || c.Stderr != "err\n" || !c.OK() {
		t.Errorf("%+v, want Stdout = \"22\\n/\\n\", Stderr = \"err\\n\", OK", c)
	}
	if c := cell(t, k, "(exit 3)", nil); c.Status != llmsandbox.StatusError || c.ExitCode != 3 || c.StateLost {
		t.Errorf("%+v, want Status = StatusError, ExitCode = 3, StateLost false", c)
	}
	c := cell(t, k, "while :; do sleep 100; done", &llmsandbox.CellOptions{Timeout: time.Second})
	if c.Status != llmsandbox.StatusTimeout || !c.Interrupted || c.StateLost {
		t.Errorf("%+v, want Status = StatusTimeout, Interrupted true, StateLost false", c)
	}
	if c := cell(t, k, "add 1", nil); c.Stdout != "21\n" {
		t.Errorf("%+v, want Stdout = \"21\\n\"", c)
	}
	if c := cell(t, k, "exit 3", nil); c.ExitCode != 3 || !c.StateLost {
		t.Errorf("%+v, want ExitCode = 3, StateLost true", c)
	}
	if c := cell(t, k, `echo "x is $x"`, nil); c.Stdout != "x is \n" {
		t.Errorf("%+v, want Stdout = \"x is \\n\"", c)
	}
}
