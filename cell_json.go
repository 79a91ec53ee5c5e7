package llmsandbox

import (
	"encoding/json"

	"github.com/llmsandbox/llmsandbox/security"
)

type cellJSON struct {
	Status           Status             `json:"status"`
	Count            int                `json:"count"`
	ExitCode         *int               `json:"exit_code,omitempty"`
	Signal           string             `json:"signal,omitempty"`
	Stdout           string             `json:"stdout"`
	Stderr           string             `json:"stderr"`
	StdoutTruncated  bool               `json:"stdout_truncated"`
	StderrTruncated  bool               `json:"stderr_truncated"`
	Value            map[string]string  `json:"value,omitempty"`
	Error            *cellErrorJSON     `json:"error,omitempty"`
	DurationMS       float64            `json:"duration_ms"`
	Artifacts        []Artifact         `json:"artifacts"`
	ArtifactsDropped []string           `json:"artifacts_dropped,omitempty"`
	Network          []NetworkAttempt   `json:"network,omitempty"`
	NetworkDropped   int                `json:"network_dropped,omitempty"`
	Findings         []security.Finding `json:"findings,omitempty"`
	Interrupted      bool               `json:"interrupted,omitempty"`
	StateLost        bool               `json:"state_lost,omitempty"`
	Restarted        bool               `json:"restarted,omitempty"`
	Reason           string             `json:"reason,omitempty"`
}

type cellErrorJSON struct {
	Name      string `json:"name"`
	Message   string `json:"message"`
	Traceback string `json:"traceback,omitempty"`
}

// MarshalJSON writes the cell with snake_case names, as [Result] is written.
func (c Cell) MarshalJSON() ([]byte, error) {
	out := cellJSON{
		Status: c.Status, Count: c.Count, ExitCode: c.ExitCode, Signal: c.Signal,
		Stdout: c.Stdout, Stderr: c.Stderr, StdoutTruncated: c.StdoutTruncated, StderrTruncated: c.StderrTruncated,
		Value: c.Value, DurationMS: milliseconds(c.Duration),
		Artifacts: append([]Artifact{}, c.Artifacts...), ArtifactsDropped: c.ArtifactsDropped,
		Network: c.Network, NetworkDropped: c.NetworkDropped, Findings: c.Findings,
		Interrupted: c.Interrupted, StateLost: c.StateLost, Restarted: c.Restarted, Reason: c.Reason,
	}
	if c.Error != nil {
		out.Error = (*cellErrorJSON)(c.Error)
	}
	return json.Marshal(out)
}
