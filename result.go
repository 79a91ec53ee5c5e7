package llmsandbox

import (
	"encoding/json"
	"fmt"
	"math"
	"time"

	"github.com/llmsandbox/llmsandbox/backend"
	"github.com/llmsandbox/llmsandbox/internal/plainjson"
	"github.com/llmsandbox/llmsandbox/security"
)

// A Result is what became of one run. It is made from what the kernel and the
// agent observed; nothing the program prints can change it.
type Result struct {
	// Status is what became of the program.
	Status Status `json:"status"`
	// ExitCode is the program's exit code, or that of the compile step that
	// failed. It is -1 when none was observed: after a signal, a timeout or a loss,
	// and when nothing was run.
	ExitCode int `json:"-"`
	// Signal is the name of the signal that ended the program, such as
	// "SIGSEGV", or empty.
	Signal string `json:"signal,omitempty"`
	// Stdout and Stderr are the bytes written, as far as the limits let them be
	// kept. They may hold anything, also what is not UTF-8.
	Stdout string `json:"stdout"`
	Stderr string `json:"stderr"`
	// StdoutTruncated and StderrTruncated tell that the program wrote more than
	// is kept here.
	StdoutTruncated bool `json:"stdout_truncated"`
	StderrTruncated bool `json:"stderr_truncated"`
	// Duration is the wall time from the start of the first step to the end of
	// the last.
	Duration time.Duration `json:"-"`
	// CPU is the user and system time of all steps and the children they waited for.
	CPU time.Duration `json:"-"`
	// PeakMemory is the largest resident size of any one process, in bytes; 0
	// when not known.
	PeakMemory int64 `json:"peak_memory_bytes"`
	// SandboxID, Backend and Language tell where and as what the run took place.
	SandboxID string `json:"sandbox_id"`
	Backend   string `json:"backend"`
	Language  string `json:"language"`
	// Artifacts are what this run made, in the order it made them.
	Artifacts []Artifact `json:"artifacts"`
	// ArtifactsDropped says what was left out of Artifacts, one sentence each.
	ArtifactsDropped []string `json:"artifacts_dropped,omitempty"`
	// Network are the sandbox's attempts to reach something that began during the run, in
	// that order, and NetworkDropped how many more there were than are kept. Those that
	// were open at its end have no Duration. A handle that Attach returned knows of none:
	// the one that opened the sandbox serves its network.
	Network        []NetworkAttempt `json:"network,omitempty"`
	NetworkDropped int              `json:"network_dropped,omitempty"`
	// Findings are what the sandbox's policy names in the code and its libraries, whether
	// it refused them or not.
	Findings []security.Finding `json:"findings,omitempty"`
	// Reason is a sentence on why there is no ordinary outcome (timeout, lost, refused,
	// setup_failed, out_of_memory, output_limit), or empty.
	Reason string `json:"reason,omitempty"`
	// Hints are what may help a run that failed, at most a few.
	Hints []Hint `json:"hints,omitempty"`
	// Capabilities tells control by control what was enforced, and by what.
	Capabilities backend.Capabilities `json:"-"`
}

// OK tells whether the program ended by itself with exit code 0.
func (r *Result) OK() bool { return r.Status == StatusOK }

// resultFields are a Result without its methods.
type resultFields Result

// resultJSON has in place of some fields what JSON has for them. Status is there again to be the first one.
type resultJSON struct {
	Status     Status  `json:"status"`
	ExitCode   *int    `json:"exit_code,omitempty"`
	DurationMS float64 `json:"duration_ms"`
	CPUMS      float64 `json:"cpu_ms"`
	resultFields
	NotEnforced []string `json:"not_enforced,omitempty"`
}

// MarshalJSON writes the result with snake_case names, times in milliseconds
// (duration_ms, cpu_ms) and memory in bytes. Of Capabilities it has only the names of the
// controls that are not enforced (not_enforced): they have a JSON form of their own. Bytes of Stdout and Stderr that are
// not UTF-8 become U+FFFD. exit_code is absent when none was observed.
// Unlike this method, json.Marshal escapes <, > and &; an Encoder does so unless told
// otherwise by SetEscapeHTML.
func (r Result) MarshalJSON() ([]byte, error) {
	out := resultJSON{r.Status, observedCode(r.ExitCode), milliseconds(r.Duration), milliseconds(r.CPU), resultFields(r), r.Capabilities.NotEnforced()}
	out.Artifacts = append([]Artifact{}, r.Artifacts...)
	return plainjson.Marshal(out)
}

// UnmarshalJSON reads what MarshalJSON writes, in place of all that the result had. Times are whole microseconds there, and empty lists
// are nil. Capabilities has the controls that are not enforced, by their names, and no others: its NotEnforced is what it was, and
// nothing else of it is known.
func (r *Result) UnmarshalJSON(b []byte) error {
	var in *resultJSON
	if err := json.Unmarshal(b, &in); err != nil || in == nil {
		return err
	}
	duration, err := fromMilliseconds(in.DurationMS)
	if err != nil {
		return fmt.Errorf("duration_ms: %w", err)
	}
	cpu, err := fromMilliseconds(in.CPUMS)
	if err != nil {
		return fmt.Errorf("cpu_ms: %w", err)
	}
	*r = Result(in.resultFields)
	r.Status, r.ExitCode, r.Duration, r.CPU = in.Status, codeOf(in.ExitCode), duration, cpu
	r.Artifacts, r.ArtifactsDropped = unlessEmpty(r.Artifacts), unlessEmpty(r.ArtifactsDropped)
	r.Network, r.Findings, r.Hints = unlessEmpty(r.Network), unlessEmpty(r.Findings), unlessEmpty(r.Hints)
	for _, name := range in.NotEnforced {
		r.Capabilities.Controls = append(r.Capabilities.Controls, backend.Control{Name: name})
	}
	return nil
}

// unlessEmpty is a list as results have it: nil where there is nothing in it.
func unlessEmpty[T any](list []T) []T {
	if len(list) == 0 {
		return nil
	}
	return list
}

// noExitCode is the exit code of what was not seen to exit.
const noExitCode = -1

// observedCode is an exit code as JSON has it: nil when none was observed.
func observedCode(code int) *int {
	if code == noExitCode {
		return nil
	}
	return &code
}

// codeOf is what observedCode was given.
func codeOf(observed *int) int {
	if observed == nil {
		return noExitCode
	}
	return *observed
}

func milliseconds(d time.Duration) float64 {
	return float64(d.Microseconds()) / 1000
}

// mostMicroseconds is a time of some 35 years, up to which milliseconds in a float64 tell microseconds apart.
const mostMicroseconds = 1 << 50

// fromMilliseconds is what milliseconds was given, in whole microseconds.
func fromMilliseconds(ms float64) (time.Duration, error) {
	us := math.Round(ms * 1000)
	if math.Abs(us) > mostMicroseconds {
		return 0, fmt.Errorf("%v milliseconds: %w: no program takes so long", ms, ErrInvalid)
	}
	return time.Duration(us) * time.Microsecond, nil
}

// A Status is what became of a run. There is exactly one, and it is observed,
// never guessed.
type Status string

// The statuses.
const (
	// StatusOK: the program ended by itself with exit code 0.
	StatusOK Status = "ok"
	// StatusError: the program ended by itself with another exit code, or its
	// compilation did.
	StatusError Status = "error"
	// StatusTimeout: the run's timeout ended it.
	StatusTimeout Status = "timeout"
	// StatusOutOfMemory: the kernel killed the program, or a process of it
	// without which it failed, for exceeding the memory limit.
	StatusOutOfMemory Status = "out_of_memory"
	// StatusOutputLimit: the program wrote more than Limits.Output. What is over that is
	// dropped, and what still ran was killed.
	StatusOutputLimit Status = "output_limit"
	// StatusKilled: a signal ended the program.
	StatusKilled Status = "killed"
	// StatusRefused: a policy refused the code; nothing was run.
	StatusRefused Status = "refused"
	// StatusSetupFailed: we failed before the program started. Never the
	// program's fault.
	StatusSetupFailed Status = "setup_failed"
	// StatusLost: the sandbox or its stream went away, and what became of the program cannot be known.
	StatusLost Status = "lost"
)
