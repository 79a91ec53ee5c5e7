package service

import (
	"slices"
	"sync"
	"unicode/utf8"
)

// What is kept of each stream while a program runs, in bytes, and how many of them Next returns at most.
const (
	keptOutput = 1 << 20
	maxPiece   = 32 << 10
)

// Offsets are places in a program's stdout and stderr, in bytes from its start.
type Offsets [2]int64

// An Output is what a program writes: the last 1 MiB of each stream at least while it runs, and all that its result has afterwards. It is safe for
// concurrent use.
type Output struct {
	mu      sync.Mutex
	streams [2]stream
	news    chan struct{} // closed at the next change
	ended   bool
}

// A stream has the bytes from start on.
type stream struct {
	start int64
	data  []byte
}

func newOutput() *Output { return &Output{news: make(chan struct{})} }

// A Piece is some of a program's output.
type Piece struct {
	Stderr bool
	Offset int64 // of its first byte; beyond what was asked for where what comes before is not kept
	Data   []byte
}

// Next returns what is kept of one of the streams from the offsets on, up to 32 KiB. A piece does not end in the middle of a character unless it is the
// last, and is empty where nothing behind a gap has come yet. Where there is none, news is closed once there may be one; it is nil if there will be none.
func (o *Output) Next(from Offsets) (piece *Piece, news <-chan struct{}) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for i := range o.streams {
		s := &o.streams[i]
		at := max(from[i], s.start)
		var data []byte
		if at < s.start+int64(len(s.data)) {
			data = s.data[at-s.start:]
			data = data[:min(len(data), maxPiece)]
		}
		if whole := WholeRunes(data); whole > 0 || !o.ended {
			data = data[:whole]
		}
		if len(data) > 0 || at > from[i] {
			return &Piece{i == 1, at, slices.Clone(data)}, nil
		}
	}
	if o.ended {
		return nil, nil
	}
	return nil, o.news
}

// WholeRunes is how many bytes of a text there are up to a character at its end of which some are missing.
func WholeRunes(text []byte) int {
	for back := 1; back < utf8.UTFMax && back <= len(text); back++ {
		if tail := text[len(text)-back:]; utf8.RuneStart(tail[0]) {
			if !utf8.FullRune(tail) {
				return len(text) - back
			}
			break
		}
	}
	return len(text)
}

// An outputWriter adds to one of the streams.
type outputWriter struct {
	output *Output
	stream int
}

// Write implements io.Writer.
func (w outputWriter) Write(p []byte) (int, error) {
	o := w.output
	o.mu.Lock()
	defer o.mu.Unlock()
	s := &o.streams[w.stream]
	s.data = append(s.data, p...)
	if over := len(s.data) - keptOutput; over > keptOutput {
		s.data, s.start = slices.Clone(s.data[over:]), s.start+int64(over)
	}
	o.changed()
	return len(p), nil
}

// begin sets what is known of the output before anything is written to it.
func (o *Output) begin(streams [2]stream) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.streams = streams
	o.changed()
}

func (o *Output) changed() {
	close(o.news)
	o.news = make(chan struct{})
}

// end puts all that is known of the output in the place of what was kept.
func (o *Output) end(starts Offsets, stdout, stderr []byte) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.streams = [2]stream{{starts[0], stdout}, {starts[1], stderr}}
	o.ended = true
	o.changed()
}
