// Package database is what a server of package httpapi has kept for when it was killed, and for other servers beside it.
package database

import "context"

// Records keep what a server has to know after it was killed: which programs it has started that go on without their client, what became of them, output
// included, and what it has answered to requests with an Idempotency-Key. A record is data under a name of a project's sandbox, or of the project where
// sandbox is empty. Methods may be called concurrently. Records may be dropped once they are a day old, or a project has many; those that are open last.
type Records interface {
	// PutRecord keeps data in place of what is there. A record is open while its program runs.
	PutRecord(ctx context.Context, project, sandbox, name string, open bool, data []byte) error
	// AddRecord keeps data that is not open where there is no record of that name, and reports whether there was none.
	AddRecord(ctx context.Context, project, sandbox, name string, data []byte) (added bool, err error)
	// Record returns what was kept. It fails with fs.ErrNotExist.
	Record(ctx context.Context, project, sandbox, name string) (data []byte, open bool, err error)
	// OpenRecords returns the names of a sandbox's open records.
	OpenRecords(ctx context.Context, project, sandbox string) ([]string, error)
	// RemoveRecord drops a record, if it is there.
	RemoveRecord(ctx context.Context, project, sandbox, name string) error
	// RemoveRecords drops all records of a sandbox.
	RemoveRecords(ctx context.Context, project, sandbox string) error
}

// Replicas are servers that agree on which of them holds which sandbox. Methods may be called concurrently.
type Replicas interface {
	// Beat says that a server is at a URL and lives, and calls each for all that there are, with how often they have said so.
	Beat(ctx context.Context, id, url string, each func(id, url string, beats int64)) error
	// Leave drops a server that has not said so more often than that; negative: however often it has.
	Leave(ctx context.Context, id string, beats int64) error
	// Held calls each for the sandboxes that a server holds, and for those whose holder is no server that there is.
	Held(ctx context.Context, id string, each func(sandbox, project, holder, network string)) error
	// Holder returns which server holds a sandbox, and what KeepNetwork has kept; empty: none does.
	Holder(ctx context.Context, sandbox string) (holder, network string, err error)
	// Take has a server hold a sandbox of a project that the server from has held, and reports whether that still did. Where from is empty, none may
	// have held it, and the network is kept as KeepNetwork does.
	Take(ctx context.Context, sandbox, project, network, holder, from string) (taken bool, err error)
	// KeepNetwork keeps what a sandbox can reach, in a form that the server chooses, for the server that takes it.
	KeepNetwork(ctx context.Context, sandbox, network string) error
	// Drop forgets a sandbox that has ended, if that server holds it.
	Drop(ctx context.Context, sandbox, holder string) error
}
