package collect

import (
	"context"

	"github.com/llmsandbox/llmsandbox/artifact"
	"github.com/llmsandbox/llmsandbox/internal/agentclient"
	"github.com/llmsandbox/llmsandbox/internal/agentproto"
)

// A Client reaches into the sandbox; an *agentclient.Client is one.
type Client interface {
	Find(context.Context, agentproto.FindRequest) (agentproto.Found, error)
	ReadBelow(ctx context.Context, folder, path string, limit int64) ([]byte, error)
	Remove(ctx context.Context, path string, o agentclient.RemoveOptions) error
}

// A Request says what to collect.
type Request struct {
	// Capture is the capture directory, Files the artifacts directory.
	Capture, Files string
	// Marker is a file that was written when the run began. SinceNanos, when not 0, is
	// the moment in its place.
	Marker     string
	SinceNanos int64
	// Discard, when set, holds Capture and is removed afterwards. Without it, the
	// capture directory is emptied.
	Discard string
	// MaxCount and MaxBytes bound the artifacts.
	MaxCount int
	MaxBytes int64
	// Seen are files that another request has returned.
	Seen *Seen
}

// A Result is what was collected.
type Result struct {
	Artifacts []artifact.Artifact
	// Dropped says what was left out, one sentence each.
	Dropped []string
	// NowNanos is the sandbox's clock when the search began.
	NowNanos int64
}

// Collect takes artifacts out of a sandbox. An error is one of the way there; what was
// taken until then is in the result.
func Collect(ctx context.Context, c Client, r Request) (Result, error) {
	found, err := c.Find(ctx, agentproto.FindRequest{
		Folders: []string{r.Capture, r.Files}, Marker: r.Marker, SinceNanos: r.SinceNanos, Discard: r.Discard,
	})
	if err != nil {
		return Result{}, err
	}
	res := Result{NowNanos: found.NowNanos}
	t := &taker{ctx: ctx, client: c, request: r, left: r.MaxBytes, captured: map[digest]bool{}}
	if found.Unmarked {
		t.drop("what the run made is not known: its program removed the folder that tells when it began")
	}
	if found.Truncated {
		t.drop("not all new files were considered: there are too many of them, or they lie too deep")
	}
	folder := newCaptureFolder(found.Files)
	err = t.captures(folder)
	if err == nil {
		err = t.files(found.Files)
	}
	if err == nil && !found.Discarded {
		err = clean(ctx, c, r, found)
	}
	res.Artifacts, res.Dropped = t.result()
	return res, err
}

// clean removes what was captured.
func clean(ctx context.Context, c Client, r Request, found agentproto.Found) error {
	if r.Discard != "" {
		return c.Remove(ctx, r.Discard, agentclient.RemoveOptions{Recursive: true, Missing: true})
	}
	for _, f := range found.Files {
		if f.Folder != captureIndex {
			continue
		}
		if err := c.Remove(ctx, r.Capture+"/"+f.Path, agentclient.RemoveOptions{Missing: true}); err != nil {
			return err
		}
	}
	return nil
}
