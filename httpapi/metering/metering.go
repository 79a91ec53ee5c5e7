// Package metering is what a server of package httpapi has kept of what projects use.
package metering

import (
	"context"
	"time"
)

// An Amount is what sandboxes have used.
type Amount struct {
	// CPU is the time of all processes, as the backend counts it for a sandbox as a whole.
	CPU time.Duration
	// Sent and Received are the bytes that went over the sandboxes' networks.
	Sent, Received int64
	// Runs is how many programs and cells have ended.
	Runs int64
	// Lived is for how long there were sandboxes, all of them together.
	Lived time.Duration
}

// Plus returns both amounts together.
func (a Amount) Plus(b Amount) Amount {
	return Amount{a.CPU + b.CPU, a.Sent + b.Sent, a.Received + b.Received, a.Runs + b.Runs, a.Lived + b.Lived}
}

// An Hour is what a project has used in the hour that begins at Begins, in UTC. What is counted counts for the hour in which it is seen.
type Hour struct {
	Project string
	Begins  time.Time
	Amount
}

// A Counted is up to where a sandbox's counters are in its project's usage. They count from the sandbox's beginning.
type Counted struct {
	Project, Sandbox string
	At               time.Time
	CPU              time.Duration
	Sent, Received   int64
	// Ended says that the sandbox has ended: nothing of it has to be known any more.
	Ended bool
}

// A Store keeps what projects use. Methods may be called concurrently.
type Store interface {
	// AddUsage adds to what is kept of these projects' hours, and replaces what is kept of these sandboxes unless that is
	// later: all of it, or nothing if it fails.
	AddUsage(ctx context.Context, hours []Hour, sandboxes []Counted) error
	// Counted returns what is kept of a sandbox. It fails with fs.ErrNotExist.
	Counted(ctx context.Context, project, sandbox string) (Counted, error)
	// Usage returns a project's hours that begin at from or later and before to, in their order; those of which nothing is kept are left out.
	Usage(ctx context.Context, project string, from, to time.Time) ([]Hour, error)
}
