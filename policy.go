package llmsandbox

import (
	"context"
	"fmt"

	"github.com/llmsandbox/llmsandbox/internal/language"
	"github.com/llmsandbox/llmsandbox/security"
)

// Policy is what a sandbox's code is checked against before it is run. It is advice: what
// a program does cannot be seen in its text with certainty, and the sandbox holds
// whatever passes. It looks at the code of Run, Stream and of kernels' cells, at the lines
// of Shell, and at libraries; the programs of Exec are the caller's own.
type Policy struct {
	// Checker is the compiled policy; nil: there is none.
	Checker *security.Checker
	// WarnOnly tells what is found, in the results, and refuses nothing.
	WarnOnly bool
}

// A RefusedError says what of an installation a policy refuses.
type RefusedError struct {
	Report security.Report
}

func (e *RefusedError) Error() string { return refusal(e.Report) }

func (e *RefusedError) Unwrap() error { return ErrRefused }

// Check looks at a program as Run would, without a sandbox: what was found, and why it is
// refused, which is empty if it is not. Its error is ctx's.
func (p Policy) Check(ctx context.Context, program security.Program) (findings []security.Finding, refused string, err error) {
	if p.Checker == nil {
		return nil, "", nil
	}
	report, err := p.Checker.CheckProgram(ctx, program)
	if err != nil {
		return report.Findings, "", fmt.Errorf("check the code against the policy: %w", err)
	}
	if report.Blocked && !p.WarnOnly {
		refused = refusal(report)
	}
	return report.Findings, refused, nil
}

// checkLibraries is what comes before every installation.
func (p Policy) checkLibraries(lang *language.Language, libraries []string) error {
	if p.Checker == nil || p.WarnOnly || len(libraries) == 0 {
		return nil
	}
	report, err := p.Checker.CheckLibraries(lang.Name, libraries)
	if err == nil && report.Blocked {
		err = &RefusedError{report}
	}
	return err
}

// refusal is a sentence on the finding that decided.
func refusal(report security.Report) string {
	name := "the policy"
	if report.Policy != "" {
		name = "the policy " + report.Policy
	}
	violations := report.Violations()
	if len(violations) == 0 {
		return name + " refuses it"
	}
	f := violations[len(violations)-1]
	where := ""
	switch {
	case f.Line > 0 && f.File != "":
		where = fmt.Sprintf(" at %s:%d:%d", f.File, f.Line, f.Column)
	case f.Line > 0:
		where = fmt.Sprintf(" at line %d, column %d", f.Line, f.Column)
	}
	return fmt.Sprintf("%s refuses %q%s: %s (%s, %v): nothing was run", name, f.Code, where, f.Reason, f.Rule, f.Severity)
}

// refuse checks a run's code. It returns a result when the run is over by that.
func (s *Sandbox) refuse(ctx context.Context, lang *language.Language, program security.Program) (findings []security.Finding, res *Result, err error) {
	program.Language = lang.Name
	findings, refused, err := s.policy.Check(ctx, program)
	if err != nil {
		res, err = s.failed(lang.Name, err)
		return findings, res, err
	}
	if refused == "" {
		return findings, nil, nil
	}
	return findings, &Result{
		Status: StatusRefused, ExitCode: noExitCode, SandboxID: s.ID(), Backend: s.backend, Language: lang.Name,
		Reason: refused, Findings: findings, Capabilities: s.Capabilities(),
	}, nil
}
