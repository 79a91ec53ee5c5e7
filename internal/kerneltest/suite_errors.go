//go:build unix

package kerneltest

import (
	"strings"
	"testing"
)

func failures(t *testing.T, k *Kernel, c Cells) {
	if c.Prepare != "" {
		k.Ask("reset", "", 0)
		k.MustRun(c.Prepare)
		c.Failure[2] = strings.ReplaceAll(c.Failure[2], "[1]", "[2]")
		c.SyntaxAt = strings.ReplaceAll(c.SyntaxAt, "[1]", "[2]")
	}
	if e := k.Run(c.Fails); e.Status != "error" || e.Failure == nil || e.Failure.Name != c.Failure[0] || e.Failure.Message != c.Failure[1] || !strings.Contains(e.Failure.Traceback, c.Failure[2]) {
		t.Errorf("%s %q, want Status = \"error\", Failure not nil, e.Failure.Name = c.Failure[0], e.Failure.Message = c.Failure[1], strings.Contains(e.Failure.Traceback, c.Failure[2]) = true", e.Status, e.Failure)
	}
	if c.Syntax == "" {
		return
	}
	k.prime(c)
	syntax := k.Run(c.Syntax)
	at := strings.NewReplacer("[1]", "["+itoa(syntax.Count)+"]").Replace(strings.ReplaceAll(c.SyntaxAt, "[2]", "[1]"))
	if syntax.Status != "error" || syntax.Failure == nil || !strings.Contains(syntax.Failure.Traceback, at) || syntax.Failure.Name == "" || syntax.Failure.Message == "" {
		t.Errorf("%s %q, want %q", syntax.Status, syntax.Failure, at)
	}
	k.kept(c)
	k.Run(c.Fails)
	k.kept(c)
}

func itoa(n int) string {
	if n < 10 {
		return string(rune('0' + n))
	}
	return itoa(n/10) + itoa(n%10)
}
