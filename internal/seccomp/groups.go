package seccomp

import (
	"slices"
	"strings"
)

// A Verdict is what becomes of a group's calls.
type Verdict string

// The verdicts.
const (
	Allow   Verdict = "allow"
	Check   Verdict = "check" // allowed or EPERM by their arguments
	Deny    Verdict = "EPERM"
	Missing Verdict = "ENOSYS" // as if the kernel did not have them
)

// A Group is system calls that share a verdict and the reason for it.
type Group struct {
	Name    string
	Verdict Verdict
	Why     string
	Calls   []string
}

// Describe lists the filter's groups. A call in none of them is denied
// with EPERM when it is known, with ENOSYS when it is newer than the filter. The
// result is the caller's own.
func Describe() []Group { return groups() }

// groups makes the list anew each time: a program that never needs it should not
// pay for it when it starts.
func groups() []Group { return slices.Concat(allowed(), checked(), denied()) }

// of is the verdict's program for a call.
func (v Verdict) of(call string) span {
	switch v {
	case Allow:
		return span{name: "allow", block: allow()}
	case Check:
		return span{name: call, block: check(call)}
	case Missing:
		return span{name: "ENOSYS", block: errno(eNOSYS)}
	default: // denied, and what no group lists
		return span{name: "EPERM", block: errno(ePERM)}
	}
}

func calls(s string) []string { return strings.Fields(s) }
