package access

import "strings"

// An Error is why something that was asked of a cluster, or about it, failed.
type Error struct {
	Doing string // what failed, such as "create the pod"; empty for Find
	Why   string
	Fix   string // what to do about it
	// Kind is the backend package's error that it is, such as backend.ErrUnsupported;
	// nil when it is none of them.
	Kind error
	// Cause is the error below, if there is one: apierrors' functions look through it.
	Cause error
}

func (e *Error) Error() string {
	var parts []string
	if e.Doing != "" {
		parts = append(parts, e.Doing)
	}
	parts = append(parts, e.Why)
	s := strings.Join(parts, ": ")
	if e.Fix != "" {
		s += "; " + e.Fix
	}
	return s
}

// Unwrap returns Kind and Cause, as far as there are.
func (e *Error) Unwrap() []error {
	var all []error
	for _, err := range []error{e.Kind, e.Cause} {
		if err != nil {
			all = append(all, err)
		}
	}
	return all
}
