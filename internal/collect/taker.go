package collect

import (
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"slices"

	"github.com/llmsandbox/llmsandbox/artifact"
	"github.com/llmsandbox/llmsandbox/internal/agentproto"
)

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
func (t *taker) read(folder, path, name string) (data []byte, ok bool, err error) {
	data, err = t.client.ReadBelow(t.ctx, folder, path, t.left)
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
