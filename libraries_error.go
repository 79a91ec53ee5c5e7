package llmsandbox

import (
	"fmt"
	"strings"
)

// An InstallError tells that libraries could not be installed: there is no such package,
// it does not build, its versions conflict, or it took too long. It wraps ErrInstall, and
// Err if there is one.
type InstallError struct {
	Language  string
	Libraries []string // canonical, sorted
	// Status is what became of the package tool; empty when it did not come to run.
	Status Status
	// Output are the package tool's own last lines.
	Output string
	// Err is the cause when it was not the package tool.
	Err error
}

// Error tells all of it.
func (e *InstallError) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s: %s (%s)", ErrInstall, strings.Join(e.Libraries, ", "), e.Language)
	switch {
	case e.Err != nil:
		fmt.Fprintf(&b, ": %v", e.Err)
	case e.Status != "":
		fmt.Fprintf(&b, ": the package tool ended as %s", e.Status)
	}
	if e.Output != "" {
		b.WriteString("; its last lines:\n" + e.Output)
	}
	return b.String()
}

// Unwrap makes errors.Is find ErrInstall and the cause.
func (e *InstallError) Unwrap() []error {
	if e.Err == nil {
		return []error{ErrInstall}
	}
	return []error{ErrInstall, e.Err}
}
