package cli

import (
	"fmt"

	"github.com/spf13/pflag"

	"github.com/llmsandbox/llmsandbox"
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
