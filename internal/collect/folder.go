package collect

import (
	"slices"
	"strings"

	"github.com/llmsandbox/llmsandbox/internal/agentproto"
)

// Indexes of the directories of a search.
const (
	captureIndex = iota
	filesIndex
)

const digits = 6

// A captureFolder is what a search has found in a capture directory.
type captureFolder struct {
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

func newCaptureFolder(found []agentproto.FoundFile) captureFolder {
	var folder captureFolder
	described, contents := map[string]bool{}, []string{}
	for _, f := range found {
		if f.Folder != captureIndex {
			continue
		}
		number, kind, _ := strings.Cut(f.Path, ".")
		switch {
		case f.Path == "dropped":
			folder.dropped = true
		case len(number) != digits || strings.Trim(number, "0123456789") != "":
		case kind == "json":
			described[number] = true
			folder.entries = append(folder.entries, captured{number, f.CTimeNanos})
		case kind == "data":
			contents = append(contents, number)
		}
	}
	for _, number := range contents {
		if !described[number] {
			folder.unfinished++
		}
	}
	slices.SortFunc(folder.entries, func(a, b captured) int { return strings.Compare(a.number, b.number) })
	return folder
}
