package backendtest

import (
	"io"
	"os"
	"strings"
	"sync"
	"testing"
)

// A signal is a writer that waits for a program to have written a text.
type signal struct {
	text     string
	seen     chan struct{}
	released chan struct{}

	mu  sync.Mutex
	got strings.Builder
}

func newSignal(text string) *signal {
	return &signal{text: text, seen: make(chan struct{}), released: make(chan struct{})}
}

func (s *signal) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	before := strings.Contains(s.got.String(), s.text)
	s.got.Write(p)
	if !before && strings.Contains(s.got.String(), s.text) {
		close(s.seen)
	}
	return len(p), nil
}

// wait returns when the text was written; ended says that the program has ended.
func (s *signal) wait(t *testing.T, ended <-chan struct{}) {
	t.Helper()
	select {
	case <-s.seen:
	case <-ended:
		t.Errorf("the program ended before it wrote a line, want %q", s.text)
	}
}

func (s *signal) release() { close(s.released) }

// A blockedReader has nothing to read until it is done.
type blockedReader struct{ done <-chan struct{} }

func (r blockedReader) Read([]byte) (int, error) {
	<-r.done
	return 0, io.EOF
}

// openDescriptors are those of this process.
func openDescriptors(t *testing.T) int {
	t.Helper()
	all, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	return len(all)
}
