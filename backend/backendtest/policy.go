package backendtest

import (
	"errors"
	"io/fs"
	"strings"
	"testing"

	"github.com/llmsandbox/llmsandbox"
	"github.com/llmsandbox/llmsandbox/security"
)

// noCurl refuses curl in Bash and eval in Python, and mentions what is printed.
func noCurl(t testing.TB) *security.Checker {
	t.Helper()
	c, err := security.Compile(security.Policy{
		Name: "no-curl", Threshold: security.Medium,
		Modules: []security.RestrictedModule{{Name: "requests", Severity: security.High}},
		Names: []security.RestrictedName{
			{Name: "curl", Severity: security.Medium, Languages: []string{"bash"}},
			{Name: "eval", Severity: security.High, Languages: []string{"python"}},
			{Name: "print", Severity: security.Low, Languages: []string{"python"}},
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// acceptance92PolicyRefuses has code that a policy refuses, in every way code gets into a
// sandbox: none of it runs, also when the sandbox is closed.
func (s *suite) acceptance92PolicyRefuses(t *testing.T) {
	sb := s.open(t, llmsandbox.Options{Policy: llmsandbox.Policy{Checker: noCurl(t)}})
	refused := func(res *llmsandbox.Result, err error) {
		t.Helper()
		if err != nil || res.Status != llmsandbox.StatusRefused || res.ExitCode != -1 || len(res.Findings) == 0 || !strings.Contains(res.Reason, "no-curl") {
			t.Errorf("%+v: %v, want no error, Status = StatusRefused, ExitCode = -1, Findings not empty, Reason containing \"no-curl\"", res, err)
		}
	}
	const code = "print('ran')\nopen('made', 'w')\neval('1')"
	ctx := testContext(t)
	res, err := sb.Run(ctx, code, nil)
	refused(res, err)
	if len(res.Findings) != 2 || !strings.Contains(res.Reason, "line 3, column 1") {
		t.Errorf("%q of %+v, want len(res.Findings) = 2, Reason containing \"line 3, column 1\"", res.Reason, res.Findings)
	}
	refused(sb.Run(ctx, "curl x", &llmsandbox.RunOptions{Language: "bash"}))
	refused(sb.Run(ctx, "1", &llmsandbox.RunOptions{Files: map[string][]byte{"more.py": []byte("eval('1')")}}))
	refused(sb.Run(ctx, "1", &llmsandbox.RunOptions{Libraries: []string{"Requests>=2"}}))
	refused(sb.Shell(ctx, "touch made && curl x", nil))
	for ev, err := range sb.Stream(ctx, code, nil) {
		if ev.Result != nil || err != nil {
			refused(ev.Result, err)
		}
	}
	if _, err := sb.Stat(ctx, "made"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("refused code has run, or that is not known: %v, want fs.ErrNotExist", err)
	}
	var why *llmsandbox.RefusedError
	if err := sb.Install(ctx, []string{"requests[socks]"}, nil); !errors.As(err, &why) || !errors.Is(err, llmsandbox.ErrRefused) {
		t.Errorf("an installation: %v, want an error of type %T, llmsandbox.ErrRefused", err, why)
	}
	// What passes runs, and reports what was found below the threshold.
	res = run(t, sb, "print('ran') # eval(1)", nil)
	wantStdout(t, res, "ran\n")
	if len(res.Findings) != 1 || res.Findings[0].Severity != security.Low {
		t.Errorf("%+v, want len(res.Findings) = 1, Severity = Low", res.Findings)
	}
	if err := sb.Close(); err != nil {
		t.Fatal(err)
	}
	refused(sb.Run(ctx, code, nil))
}

// policyOfCells has a policy look at each cell, and at an opening's libraries.
func (s *suite) policyOfCells(t *testing.T) {
	sb := s.open(t, llmsandbox.Options{Policy: llmsandbox.Policy{Checker: noCurl(t)}})
	ctx := testContext(t)
	k, err := sb.Kernel(ctx, "", nil)
	if err != nil {
		t.Fatal(err)
	}
	defer k.Close()
	if c, err := k.Run(ctx, "x = 1; eval('x')", nil); err != nil || c.Status != llmsandbox.StatusRefused || c.Count != 0 || c.Reason == "" {
		t.Errorf("%+v: %v, want no error, Status = StatusRefused, Count = 0, Reason not empty", c, err)
	}
	if c, err := k.Run(ctx, "'x' in dir()", nil); err != nil || c.Value["text/plain"] != "False" {
		t.Errorf("refused code has run: %+v: %v, want no error, c.Value[\"text/plain\"] = \"False\"", c, err)
	}
	o := s.options(llmsandbox.Options{Libraries: []string{"requests"}, Policy: llmsandbox.Policy{Checker: noCurl(t)}})
	if sb, err := llmsandbox.Open(ctx, &o); !errors.Is(err, llmsandbox.ErrRefused) {
		t.Errorf("an opening: %v, want llmsandbox.ErrRefused", err)
		if err == nil {
			_ = sb.Close()
		}
	}
}

// policyWarns reports what it would refuse, and refuses nothing.
func (s *suite) policyWarns(t *testing.T) {
	sb := s.open(t, llmsandbox.Options{Policy: llmsandbox.Policy{Checker: noCurl(t), WarnOnly: true}})
	res := run(t, sb, "eval('print(1)')", nil)
	wantStdout(t, res, "1\n")
	if len(res.Findings) == 0 || res.Findings[0].Rule != "name:eval" {
		t.Errorf("%+v, want Findings not empty, Rule = \"name:eval\"", res.Findings)
	}
}
