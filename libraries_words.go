package llmsandbox

import (
	"bytes"
	"strings"
	"sync"

	"github.com/llmsandbox/llmsandbox/internal/termsafe"
)

// Bounds of what is kept of a package tool's words, which hostile packages write, too.
const (
	maxToolLines = 30
	maxToolLine  = 500
)

// toolWords keeps the last lines that a package tool writes, and tells of each. It may be
// written to from several goroutines; each writes whole pieces.
type toolWords struct {
	tell func(line string)

	mu      sync.Mutex
	partial []byte
	lines   []string
}

func newToolWords(tell func(string)) *toolWords { return &toolWords{tell: tell} }

// Write never fails.
func (w *toolWords) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for rest := p; len(rest) > 0; {
		line, after, ended := bytes.Cut(rest, []byte("\n"))
		if room := maxToolLine - len(w.partial); room > 0 {
			w.partial = append(w.partial, line[:min(len(line), room)]...)
		}
		if ended {
			w.end()
		}
		rest = after
	}
	return len(p), nil
}

// end takes the line so far. Of a line that was drawn over, a progress bar, only the last
// state counts.
func (w *toolWords) end() {
	text := strings.TrimRight(string(w.partial), " \t\r")
	text = text[strings.LastIndexByte(text, '\r')+1:]
	w.partial = w.partial[:0]
	text = strings.ToValidUTF8(termsafe.String(text), "\uFFFD")
	if strings.TrimSpace(text) == "" {
		return
	}
	if len(w.lines) == maxToolLines {
		w.lines = append(w.lines[:0], w.lines[1:]...)
	}
	w.lines = append(w.lines, text)
	w.tell(text)
}

// last returns the last lines.
func (w *toolWords) last() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.end()
	return strings.Join(w.lines, "\n")
}
