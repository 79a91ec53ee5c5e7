package collect

import (
	"cmp"
	"crypto/sha256"
	"slices"
	"strings"

	"github.com/llmsandbox/llmsandbox/artifact"
	"github.com/llmsandbox/llmsandbox/internal/agentproto"
)

// files takes what is in the artifacts directory and was not captured already.
func (t *taker) files(found []agentproto.FoundFile) error {
	found = slices.DeleteFunc(slices.Clone(found), func(f agentproto.FoundFile) bool {
		return f.Folder != filesIndex || !t.request.Seen.first(t.request.Files, f)
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
