// Package collect takes what a run has produced out of its sandbox: what a language's
// capture put into a capture directory, and files that the program wrote into its artifacts
// directory.
//
// A capture directory holds, per artifact, NNNNNN.data with the content, then NNNNNN.json
// with its description, which is written last and by a rename. The number orders. A
// description is an object with the fields of artifact.Artifact but "data", and with
// "also": [{"mime": ..., "file": "NNNNNN.1.data"}]. A file named "dropped" has a line for
// each thing that the capture left out.
//
// All of it is the program's: it is bounded, checked, and read without following links.
package collect

import (
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"sync"

	"github.com/llmsandbox/llmsandbox/artifact"
	"github.com/llmsandbox/llmsandbox/internal/agentclient"
	"github.com/llmsandbox/llmsandbox/internal/agentproto"
)

// A Client reaches into the sandbox; an *agentclient.Client is one.
type Client interface {
	Find(context.Context, agentproto.FindRequest) (agentproto.Found, error)
	ReadBelow(ctx context.Context, dir, path string, limit int64) ([]byte, error)
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

type lastKey struct{}

// Last returns a context of what a sandbox does last, in which Collect removes nothing: that goes with the
// sandbox.
func Last(ctx context.Context) context.Context { return context.WithValue(ctx, lastKey{}, true) }

// Collect takes artifacts out of a sandbox. An error is one of the way there; what was
// taken until then is in the result.
func Collect(ctx context.Context, c Client, r Request) (Result, error) {
	last := ctx.Value(lastKey{}) != nil
	if last {
		r.Discard = ""
	}
	found, err := c.Find(ctx, agentproto.FindRequest{
		Directories: []string{r.Capture, r.Files}, Marker: r.Marker, SinceNanos: r.SinceNanos, Discard: r.Discard,
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
	dir := newCaptureDir(found.Files)
	err = t.captures(dir)
	if err == nil {
		err = t.files(found.Files)
	}
	if err == nil && !found.Discarded && !last {
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
		if f.Directory != captureIndex {
			continue
		}
		if err := c.Remove(ctx, r.Capture+"/"+f.Path, agentclient.RemoveOptions{Missing: true}); err != nil {
			return err
		}
	}
	return nil
}

type digest = [sha256.Size]byte

// A taker reads artifacts within the bounds of a request.
type taker struct {
	ctx     context.Context
	client  Client
	request Request

	taken    []taken
	left     int64           // bytes
	captured map[digest]bool // contents
	over     int             // artifacts over MaxCount
	dropped  []string
	more     int // further sentences
}

type taken struct {
	at       int64
	artifact artifact.Artifact
}

// maxSentences bounds what is said of what was left out.
const maxSentences = 16

func (t *taker) drop(format string, args ...any) {
	if len(t.dropped) == maxSentences {
		t.more++
		return
	}
	t.dropped = append(t.dropped, fmt.Sprintf(format, args...))
}

// room reports whether there may be another artifact.
func (t *taker) room() bool {
	if len(t.taken) < t.request.MaxCount {
		return true
	}
	t.over++
	return false
}

// read returns a file's content. Without an error, false means that it was left out, as
// what is said of it.
func (t *taker) read(dir, path, name string) (data []byte, ok bool, err error) {
	data, err = t.client.ReadBelow(t.ctx, dir, path, t.left)
	if err == nil {
		t.left -= int64(len(data))
		if data == nil {
			data = []byte{} // there is content, of no bytes
		}
		return data, true, nil
	}
	var refused *agentproto.Error
	if !errors.As(err, &refused) {
		return nil, false, err
	}
	switch {
	case refused.Code == agentproto.CodeTooLarge:
		t.drop("%s was left out: it is larger than the %d bytes that are left of %d", name, t.left, t.request.MaxBytes)
	case errors.Is(err, fs.ErrNotExist):
		t.drop("%s was left out: it was removed while it was looked at", name)
	default:
		t.drop("%s was left out: it cannot be read: %s", name, line(refused.Msg))
	}
	return nil, false, nil
}

// result returns all of it in order.
func (t *taker) result() (artifacts []artifact.Artifact, dropped []string) {
	slices.SortStableFunc(t.taken, func(a, b taken) int { return cmp.Compare(a.at, b.at) })
	for _, a := range t.taken {
		artifacts = append(artifacts, a.artifact)
	}
	dropped = t.dropped
	if t.over > 0 {
		dropped = append(dropped, fmt.Sprintf("%d artifacts were left out: a result carries at most %d", t.over, t.request.MaxCount))
	}
	if t.more > 0 {
		dropped = append(dropped, fmt.Sprintf("%d further notes were left out", t.more))
	}
	return artifacts, dropped
}

// files takes what is in the artifacts directory and was not captured already.
func (t *taker) files(found []agentproto.FoundFile) error {
	found = slices.DeleteFunc(slices.Clone(found), func(f agentproto.FoundFile) bool {
		return f.Directory != filesIndex || !t.request.Seen.first(t.request.Files, f)
	})
	slices.SortFunc(found, func(a, b agentproto.FoundFile) int {
		return cmp.Or(cmp.Compare(a.CTimeNanos, b.CTimeNanos), strings.Compare(a.Path, b.Path))
	})
	for _, f := range found {
		name := fileName(f.Path)
		if len(t.taken) < t.request.MaxCount && f.Size > uint64(t.left) {
			t.drop("%s was left out: it has %d bytes, more than the %d that are left of %d", name, f.Size, t.left, t.request.MaxBytes)
			continue
		}
		if !t.room() {
			continue
		}
		content, ok, err := t.read(t.request.Files, f.Path, name)
		if err != nil {
			return err
		}
		if !ok {
			continue
		}
		if t.captured[sha256.Sum256(content)] {
			t.left += int64(len(content))
			continue
		}
		a := artifact.Artifact{Name: name, MIME: artifact.TypeOf(name, content), Data: content, Source: "file"}
		size := artifact.SizeOf(a.MIME, content)
		a.Width, a.Height, a.DPI = size.Width, size.Height, size.DPI
		t.taken = append(t.taken, taken{f.CTimeNanos, a})
	}
	return nil
}

// maxSeen bounds how many files are remembered. Only those that changed within the same
// tick of the kernel's clock as a run began, or while runs go on side by side, can be
// found twice: forgetting the rest costs nothing.
const maxSeen = 8192

// Seen remembers which files were collected, so that each is an artifact once per
// change. A nil one remembers nothing. It is safe for concurrent use.
type Seen struct {
	mu    sync.Mutex
	files map[string]identity
}

type identity struct {
	inode uint64
	ctime int64
}

// first reports whether a file has not been collected as it is now, and remembers it.
func (s *Seen) first(dir string, f agentproto.FoundFile) bool {
	if s == nil {
		return true
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	key, is := dir+"/"+f.Path, identity{f.Inode, f.CTimeNanos}
	if s.files[key] == is {
		return false
	}
	if s.files == nil || len(s.files) >= maxSeen {
		s.files = map[string]identity{}
	}
	s.files[key] = is
	return true
}
