package llmsandbox

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"iter"

	"github.com/llmsandbox/llmsandbox/internal/agentclient"
	"github.com/llmsandbox/llmsandbox/internal/agentlink"
	"github.com/llmsandbox/llmsandbox/internal/agentproto"
)

// LogsOptions say which output of a process [Sandbox.Logs] returns.
type LogsOptions struct {
	// StdoutOffset and StderrOffset say from which byte of the process's output on it is
	// wanted, counted from its start. One beyond the end fails with ErrInvalid.
	StdoutOffset, StderrOffset int64
	// Follow goes on with what the process writes, until it has ended.
	Follow bool
}

// A LogChunk is a piece of a process's output.
type LogChunk struct {
	Stderr bool  // it was written to stderr
	Offset int64 // of the first byte of Data, counted from the process's start
	Lost   int64 // how many bytes just before Data were wanted and are no longer kept
	// Data is the receiver's to keep. It may end in the middle of a character.
	Data []byte
}

// errStop ends the reading of logs whose caller wants no more.
var errStop = errors.New("no more is wanted")

// Logs yields what a process that Processes lists has written, as far as the sandbox keeps it:
// all that was not delivered yet, up to 1 MiB of each stream, and at least the last 64 KiB. The
// handle that follows the process still gets all of its output. The process does not wait for a
// slow loop; LogChunk.Lost counts what such a loop has missed. Chunks of one stream come in
// order. An error ends the sequence: fs.ErrNotExist if there is no such process or its end was
// delivered, ErrLost if the stream into the sandbox was lost, after which another call can go on
// from the offsets. A sandbox that an older version opened has no logs. opts may be nil.
func (s *Sandbox) Logs(ctx context.Context, id uint64, opts *LogsOptions) iter.Seq2[LogChunk, error] {
	return func(yield func(LogChunk, error) bool) {
		var o LogsOptions
		if opts != nil {
			o = *opts
		}
		if o.StdoutOffset < 0 || o.StderrOffset < 0 {
			yield(LogChunk{}, fmt.Errorf("read the output of process %d: %w: an offset is negative", id, ErrInvalid))
			return
		}
		wanted := true
		_, err := agentlink.Call(ctx, s.link, fmt.Sprintf("read the output of process %d", id), func(c *agentclient.Client) (struct{}, error) {
			return struct{}{}, s.logs(ctx, c, id, o, func(l LogChunk) bool {
				wanted = yield(l, nil)
				return wanted
			})
		})
		if err != nil && wanted {
			yield(LogChunk{}, err)
		}
	}
}

func (s *Sandbox) logs(ctx context.Context, client *agentclient.Client, id uint64, o LogsOptions, yield func(LogChunk) bool) error {
	if _, err := s.processInfo(ctx, client, id); err != nil {
		return err
	}
	ends := map[bool]int64{false: o.StdoutOffset, true: o.StderrOffset}
	req := agentproto.LogsRequest{ID: id, OutOffset: uint64(o.StdoutOffset), ErrOffset: uint64(o.StderrOffset), Follow: o.Follow}
	err := client.Logs(ctx, req, func(part agentproto.Output) error {
		l := LogChunk{Stderr: part.Err, Offset: int64(part.Offset), Data: part.Data}
		l.Lost = l.Offset - ends[l.Stderr]
		ends[l.Stderr] = l.Offset + int64(len(l.Data))
		if !yield(l) {
			return errStop
		}
		return nil
	})
	switch agentlink.Code(err) {
	case agentproto.CodeBadRequest:
		return fmt.Errorf("%w: %w", ErrInvalid, err)
	case agentproto.CodeLost: // it has ended meanwhile, and its end was delivered
		return fmt.Errorf("%w: %v", fs.ErrNotExist, err)
	case agentproto.CodeUnsupported:
		return fmt.Errorf("the sandbox's agent is older than this program: create the sandbox again, or take the process over with AttachProcess (%w)", err)
	}
	return err
}
