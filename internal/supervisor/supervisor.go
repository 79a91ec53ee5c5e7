// Package supervisor is how one process owns a sandbox for others. It is started with an order,
// answers once the sandbox is open, and listens then on a socket that only its user can reach, by
// HTTP with JSON. Who attaches to the sandbox reaches there what its agent does not have: the
// network's rules and log, and the sandbox's first state.
package supervisor

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"

	"github.com/llmsandbox/llmsandbox/internal/egress"
	"github.com/llmsandbox/llmsandbox/internal/gateway"
	"github.com/llmsandbox/llmsandbox/internal/statedir"
)

// An Answer is a line of what a supervisor writes to its standard output: any number about its
// progress, and then the sandbox's id or an error.
type Answer struct {
	Progress json.RawMessage `json:"progress,omitempty"`
	ID       string          `json:"id,omitempty"`
	Error    *Error          `json:"error,omitempty"`
}

// An Error is a supervisor's failure. Kind tells the caller which error value it wraps.
type Error struct {
	Text string `json:"text"`
	Kind string `json:"kind,omitempty"`
}

func (e *Error) Error() string { return e.Text }

// A Network is what a sandbox may reach.
type Network struct {
	Mode  string   `json:"mode"`
	Allow []string `json:"allow,omitempty"`
	// Env is what programs need to find it, as NAME=VALUE.
	Env []string `json:"env,omitempty"`
	// Sent and Received are the bytes that have gone over it so far. A supervisor of a program before this one does not tell them.
	Sent     int64 `json:"sent_bytes,omitempty"`
	Received int64 `json:"received_bytes,omitempty"`
}

// Attempts are what a sandbox tried to reach.
type Attempts struct {
	Attempts []egress.Attempt `json:"attempts"`
	Dropped  int              `json:"dropped"`
}

// An Owner is a sandbox as its supervisor has it.
type Owner interface {
	Network() Network
	SetNetwork(ctx context.Context, mode string, allow []string) error
	// Record begins a record of the network's attempts; nil without a network.
	Record() *gateway.Record
	Reset(ctx context.Context) error
	// Kind is the Kind of an [Error].
	Kind(error) string
}

// dir is where the sockets are.
func dir() (string, error) {
	state, err := statedir.Default()
	return filepath.Join(state, "supervisors"), err
}

// socket is the path of a sandbox's, below dir.
func socket(dir, backend, id string) string {
	return filepath.Join(dir, fmt.Sprintf("%s-%s.sock", backend, id))
}

// address names a socket by its directory's descriptor: the state directory's path may be
// longer than an address of a socket, which has at most 107 bytes.
func address(dir *os.File, path string) string {
	return fmt.Sprintf("/proc/self/fd/%d/%s", dir.Fd(), filepath.Base(path))
}
