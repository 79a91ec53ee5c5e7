package cli

import (
	"fmt"
	"io"

	"github.com/spf13/pflag"

	"github.com/llmsandbox/llmsandbox"
	"github.com/llmsandbox/llmsandbox/internal/termsafe"
	"github.com/llmsandbox/llmsandbox/security"
	"github.com/llmsandbox/llmsandbox/security/policyfile"
)

// policyFlags are the flags of commands that check code before they run it.
type policyFlags struct {
	policy string
	warn   bool
}

func (f *policyFlags) register(set *pflag.FlagSet) {
	set.StringVar(&f.policy, "policy", "", "check the code before anything is started: a preset's `NAME` or a YAML or JSON file; `llmsandbox check --list` has the presets")
	set.BoolVar(&f.warn, "policy-warn", false, "with --policy: tell what it would refuse, and go on")
}

func (f *policyFlags) options() (llmsandbox.Policy, error) {
	p := llmsandbox.Policy{WarnOnly: f.warn}
	if f.policy == "" {
		if f.warn {
			return p, fmt.Errorf("--policy-warn: there is no --policy to warn by")
		}
		return p, nil
	}
	var err error
	if p.Checker, err = policyfile.Load(f.policy); err != nil {
		return p, fmt.Errorf("--policy: %w", err)
	}
	return p, nil
}

// maxFindingLines bounds how many findings are printed; --json has all.
const maxFindingLines = 20

// printViolations says what a policy names in code, as a compiler would.
func printViolations(w io.Writer, findings []security.Finding) {
	for i, f := range findings {
		if i == maxFindingLines {
			fmt.Fprintf(w, "llmsandbox: policy: and %d more\n", len(findings)-i)
			return
		}
		at := ""
		if f.Line > 0 {
			at = fmt.Sprintf("%s:%d:%d: ", f.File, f.Line, f.Column)
			if f.File == "" {
				at = fmt.Sprintf("line %d:%d: ", f.Line, f.Column)
			}
		}
		fmt.Fprintln(w, "llmsandbox: policy: "+termsafe.String(fmt.Sprintf("%s%v: %s [%s]", at, f.Severity, f.Reason, f.Rule)))
	}
}
