package collect

import (
	"cmp"
	"crypto/sha256"
	"errors"
	"slices"
	"strconv"
	"strings"

	"github.com/llmsandbox/llmsandbox/artifact"
	"github.com/llmsandbox/llmsandbox/internal/agentproto"
)

// captures takes what is in the capture directory.
func (t *taker) captures(dir captureDir) error {
	if dir.dropped {
		if err := t.notes(); err != nil {
			return err
		}
	}
	if dir.unfinished > 0 {
		t.drop("%d artifacts were left out: they were not whole when the run ended", dir.unfinished)
	}
	var last int64
	for _, c := range dir.entries {
		// The numbers order what one capture wrote, the times tell the rest.
		last = max(last, c.at)
		if !t.room() {
			continue
		}
		if err := t.capture(c.number, last); err != nil {
			return err
		}
	}
	return nil
}

// capture takes one artifact of the capture directory.
func (t *taker) capture(number string, at int64) error {
	data, err := t.client.ReadBelow(t.ctx, t.request.Capture, number+".json", maxDescription)
	if refused, ok := errors.AsType[*agentproto.Error](err); ok {
		t.drop("artifact %s was left out: its description cannot be read: %s", number, line(refused.Msg))
		return nil
	}
	if err != nil {
		return err
	}
	d, err := describe(data)
	if err != nil {
		t.drop("artifact %s was left out: %s", number, line(err.Error()))
		return nil
	}
	a := d.artifact
	content, ok, err := t.read(t.request.Capture, number+".data", a.Name)
	if err != nil || !ok {
		return err
	}
	if d.badChart {
		t.drop("the chart data of %s was left out: it is not of the form", a.Name)
	}
	a.Data, a.MIME = content, artifact.Verify(a.MIME, content)
	if size := artifact.SizeOf(a.MIME, content); size.Width > 0 {
		a.Width, a.Height, a.DPI = size.Width, size.Height, cmp.Or(size.DPI, a.DPI)
	}
	for i, also := range d.also {
		if also.file != number+"."+strconv.Itoa(i+1)+".data" {
			t.drop("a further form of %s was left out: it is named %q", a.Name, line(also.file))
			continue
		}
		form, ok, err := t.read(t.request.Capture, also.file, "a further form of "+a.Name)
		if err != nil {
			return err
		}
		if ok {
			a.Also = append(a.Also, artifact.Form{MIME: artifact.Verify(also.mime, form), Data: form})
		}
	}
	t.captured[sha256.Sum256(content)] = true
	t.taken = append(t.taken, taken{at, a})
	return nil
}

// Bounds of the note of what a capture dropped.
const (
	maxNote  = 16 << 10
	maxNotes = 8
)

// notes takes what the capture says it left out.
func (t *taker) notes() error {
	data, err := t.client.ReadBelow(t.ctx, t.request.Capture, "dropped", maxNote)
	if refused, ok := errors.AsType[*agentproto.Error](err); ok {
		t.drop("the capture left something out; what that was cannot be read: %s", line(refused.Msg))
		return nil
	}
	if err != nil {
		return err
	}
	said := map[string]bool{}
	for note := range strings.Lines(string(data)) {
		if note = line(note); note == "" || said[note] {
			continue
		}
		if said[note] = true; len(said) > maxNotes {
			t.more++
			continue
		}
		t.drop("%s", note)
	}
	return nil
}

// Indexes of the directories of a search.
const (
	captureIndex = iota
	filesIndex
)

const digits = 6

// A captureDir is what a search has found in a capture directory.
type captureDir struct {
	entries []captured
	dropped bool // there is a note of what was dropped
	// unfinished is how many contents have no description: their writer was killed.
	unfinished int
}

// captured is one artifact of it.
type captured struct {
	number string
	at     int64
}

func newCaptureDir(found []agentproto.FoundFile) captureDir {
	var dir captureDir
	described, contents := map[string]bool{}, []string{}
	for _, f := range found {
		if f.Directory != captureIndex {
			continue
		}
		number, kind, _ := strings.Cut(f.Path, ".")
		switch {
		case f.Path == "dropped":
			dir.dropped = true
		case len(number) != digits || strings.Trim(number, "0123456789") != "":
		case kind == "json":
			described[number] = true
			dir.entries = append(dir.entries, captured{number, f.CTimeNanos})
		case kind == "data":
			contents = append(contents, number)
		}
	}
	for _, number := range contents {
		if !described[number] {
			dir.unfinished++
		}
	}
	slices.SortFunc(dir.entries, func(a, b captured) int { return strings.Compare(a.number, b.number) })
	return dir
}
