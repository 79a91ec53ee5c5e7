package mcp

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/llmsandbox/llmsandbox"
	"github.com/llmsandbox/llmsandbox/internal/exitcode"
	"github.com/llmsandbox/llmsandbox/security"
)

// An outcome is what a tool reports of code. The first three are all that a client need know.
type outcome struct {
	ExitCode int    `json:"exit_code" jsonschema:"the program's exit code; 124 timeout, 125 the server failed, 126 refused by policy, 137 out of memory, 153 too much output, 128+n ended by signal n"`
	Stderr   string `json:"stderr"`
	Stdout   string `json:"stdout"`
	Status   string `json:"status" jsonschema:"ok, error, timeout, out_of_memory, output_limit, killed, refused, setup_failed or lost"`
	Error    string `json:"error,omitempty" jsonschema:"why there is no ordinary outcome"`
	Value    string `json:"value,omitempty" jsonschema:"the last expression's value"`
	// StateLost is of a session only.
	StateLost  bool           `json:"state_lost,omitempty" jsonschema:"what earlier calls have defined is gone"`
	DurationMS float64        `json:"duration_ms"`
	Artifacts  []artifactNote `json:"artifacts,omitempty" jsonschema:"what the code has made, pictures first in the content"`
	Findings   []findingNote  `json:"findings,omitempty" jsonschema:"what the policy names in the code"`
	Network    []string       `json:"network,omitempty" jsonschema:"connections that were refused or failed"`
	Image      string         `json:"image,omitempty" jsonschema:"the image made of the sandbox"`
	Notes      []string       `json:"notes,omitempty" jsonschema:"what was shortened, left out or changed"`
}

type findingNote struct {
	Rule     string `json:"rule"`
	Severity string `json:"severity"`
	Line     int    `json:"line,omitempty"`
	Column   int    `json:"column,omitempty"`
	Code     string `json:"code,omitempty"`
	Reason   string `json:"reason,omitempty"`
}

// maxNotes bounds the lists of an outcome.
const maxNotes = 20

// observed is what runs and cells have in common.
type observed struct {
	status                           llmsandbox.Status
	code                             *int
	signal                           string
	stdout, stderr                   string
	stdoutTruncated, stderrTruncated bool
	reason                           string
	duration                         time.Duration
	network                          []llmsandbox.NetworkAttempt
	findings                         []security.Finding
}

func (c Config) outcome(o observed) outcome {
	out := outcome{
		ExitCode: exitcode.Of(o.status, o.code, o.signal), Status: string(o.status), Error: line(o.reason),
		DurationMS: float64(o.duration.Microseconds()) / 1000,
	}
	out.Stdout = out.text("stdout", o.stdout, o.stdoutTruncated, c.MaxText)
	out.Stderr = out.text("stderr", o.stderr, o.stderrTruncated, c.MaxText)
	switch o.status {
	case llmsandbox.StatusRefused:
		out.Stderr = out.Error
	case llmsandbox.StatusKilled:
		if out.Error == "" && o.signal != "" {
			out.Error = "the program was ended by " + line(o.signal)
		}
	}
	out.find(o.findings)
	for _, a := range o.network {
		if a.Allowed && a.Reason == "" {
			continue
		}
		if len(out.Network) == maxNotes {
			out.note("network: there are more")
			break
		}
		out.Network = append(out.Network, line(fmt.Sprintf("%s:%d: %s", a.Name, a.Port, a.Reason)))
	}
	return out
}

// find takes up what a policy has found.
func (o *outcome) find(findings []security.Finding) {
	for i, f := range findings {
		if i == maxNotes {
			o.note("findings: %d more", len(findings)-i)
			return
		}
		o.Findings = append(o.Findings, findingNote{
			Rule: line(f.Rule), Severity: f.Severity.String(), Line: f.Line, Column: f.Column, Code: line(f.Code), Reason: line(f.Reason),
		})
	}
}

// text cleans and bounds one of the texts.
func (o *outcome) text(name, s string, truncated bool, most int) string {
	s, cut := shorten(clean(s), most)
	if cut > 0 {
		o.note("%s: %s left out of the middle; write long output to a file and read a part of it", name, count(cut, "byte"))
	}
	if truncated {
		o.note("%s: the program wrote more than the sandbox keeps", name)
	}
	return s
}

func (o *outcome) note(format string, args ...any) {
	o.Notes = append(o.Notes, fmt.Sprintf(format, args...))
}

// ours reports whether what went wrong is not the program's doing: it did not run, or its end is
// unknown.
func (o *outcome) ours() bool {
	switch llmsandbox.Status(o.Status) {
	case llmsandbox.StatusSetupFailed, llmsandbox.StatusLost, llmsandbox.StatusRefused:
		return true
	}
	return false
}

// failed is the outcome of what did not come to be.
func (s *Server) failed(err error) outcome {
	message := s.message(err)
	out := outcome{ExitCode: 1, Stderr: message, Status: string(llmsandbox.StatusSetupFailed), Error: message}
	var refused *llmsandbox.RefusedError
	switch {
	case errors.As(err, &refused):
		out.Status, out.ExitCode = string(llmsandbox.StatusRefused), exitcode.Refused
		out.find(refused.Report.Findings)
	case errors.Is(err, llmsandbox.ErrLost):
		out.Status = string(llmsandbox.StatusLost)
	}
	return out
}

// jsonText is JSON as text of a result. Angle brackets stay themselves.
func jsonText(v any) string {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		panic(fmt.Sprintf("mcp: %T cannot be JSON: %v", v, err)) // numbers and text always can be
	}
	return strings.TrimSuffix(b.String(), "\n")
}
