// Package exitcode tells what becomes of a program as one number, where a shell or a
// protocol has room for nothing else.
package exitcode

import (
	"github.com/llmsandbox/llmsandbox"
	"github.com/llmsandbox/llmsandbox/internal/signame"
)

// The codes that are not the program's own.
const (
	Timeout     = 124
	OurFailure  = 125
	Refused     = 126
	OutOfMemory = 137
	BrokenPipe  = 141 // as a shell reports SIGPIPE
	OutputLimit = 153 // as a shell tells of SIGXFSZ, a file grown too large
	SignalBase  = 128 // of the codes with which a shell reports the end by a signal
)

// Of is the code of an outcome: code where one was observed, which is not -1 then.
func Of(status llmsandbox.Status, code int, signal string) int {
	switch status {
	case llmsandbox.StatusOK, llmsandbox.StatusError:
		if code != -1 {
			return code
		}
	case llmsandbox.StatusTimeout:
		return Timeout
	case llmsandbox.StatusOutOfMemory:
		return OutOfMemory
	case llmsandbox.StatusOutputLimit:
		return OutputLimit
	case llmsandbox.StatusRefused:
		return Refused
	case llmsandbox.StatusKilled:
		if n, ok := signame.Number(signal); ok {
			return SignalBase + int(n)
		}
	}
	return OurFailure
}
