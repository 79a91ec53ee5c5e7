package kernel

import (
	"bytes"
	"io"
	"sync"
)

// keepIdle bounds what is kept of the output between two cells, in bytes.
const keepIdle = 1 << 20

// A Splitter cuts one of a driver's output streams at the marks that end its cells.
// Write never fails and never waits but for the cell's own writer.
type Splitter struct {
	mu    sync.Mutex
	cell  io.Writer // nil between cells
	mark  []byte    // NUL and the mark
	held  []byte    // may be the beginning of the mark
	found chan struct{}
	idle  []byte // came between two cells
	over  bool   // more came than is kept
}

// Begin starts a cell, whose output goes to w: first what came since the last one,
// then all until the mark. found is closed when that has arrived. lost means that some
// of what came since the last cell is not kept.
func (s *Splitter) Begin(mark string, w io.Writer) (found <-chan struct{}, lost bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.cell, s.mark, s.found = w, append([]byte{0}, mark...), make(chan struct{})
	idle, over := s.idle, s.over
	s.idle, s.over = nil, false
	if len(idle) > 0 {
		_, _ = w.Write(idle) // it does not fail: see above
	}
	return s.found, over
}

// End ends a cell whose mark has not come.
func (s *Splitter) End() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.cell == nil {
		return
	}
	s.emit(s.held)
	s.held, s.cell = nil, nil
}

// Write takes what the driver and all it started have written.
func (s *Splitter) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := len(p)
	if s.cell == nil {
		s.keep(p)
		return n, nil
	}
	if len(s.held) > 0 {
		p = append(s.held, p...)
		s.held = nil
	}
	if at := bytes.Index(p, s.mark); at >= 0 {
		s.emit(p[:at])
		s.cell = nil
		close(s.found)
		s.keep(p[at+len(s.mark):])
		return n, nil
	}
	tail := s.beginning(p)
	s.emit(p[:len(p)-tail])
	s.held = append(s.held, p[len(p)-tail:]...)
	return n, nil
}

func (s *Splitter) emit(p []byte) {
	if len(p) > 0 {
		_, _ = s.cell.Write(p) // it does not fail: see Begin
	}
}

// beginning is how many bytes at the end of p may begin the mark.
func (s *Splitter) beginning(p []byte) int {
	from := max(0, len(p)-len(s.mark)+1)
	for i := from; i < len(p); i++ {
		if p[i] == 0 && bytes.HasPrefix(s.mark, p[i:]) {
			return len(p) - i
		}
	}
	return 0
}

func (s *Splitter) keep(p []byte) {
	room := keepIdle - len(s.idle)
	if len(p) > room {
		p, s.over = p[:room], true
	}
	s.idle = append(s.idle, p...)
}
