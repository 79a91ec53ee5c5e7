//go:build unix

package kerneltest

import (
	"bytes"
	"errors"
	"os"
	"sync"
	"testing"
	"time"
)

// stream collects what comes out on one descriptor and cuts it at marks.
type stream struct {
	r     *os.File
	done  chan struct{}
	mu    sync.Mutex
	more  *sync.Cond
	data  []byte
	ended bool
	mark  []byte
	begun chan struct{}
	told  bool
}

func newStream(r *os.File) *stream {
	s := &stream{r: r, done: make(chan struct{}), begun: make(chan struct{})}
	s.more = sync.NewCond(&s.mu)
	go s.read()
	return s
}

func (s *stream) read() {
	defer close(s.done)
	buf := make([]byte, 1<<15)
	for {
		n, err := s.r.Read(buf)
		s.mu.Lock()
		s.data = append(s.data, buf[:n]...)
		if n > 0 && !s.told {
			s.told = true
			close(s.begun)
		}
		s.ended = err != nil
		s.more.Broadcast()
		s.mu.Unlock()
		if err != nil {
			return
		}
	}
}

func (s *stream) expect(mark string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.mark, s.begun, s.told = []byte("\x00"+mark), make(chan struct{}), false
}

func (s *stream) first() <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.begun
}

// cut returns what came before the mark.
func (s *stream) cut(t testing.TB) string {
	t.Helper()
	late := errors.New("late")
	timer := time.AfterFunc(patience, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.ended = true
		s.more.Broadcast()
	})
	defer timer.Stop()
	s.mu.Lock()
	defer s.mu.Unlock()
	for {
		if before, after, ok := bytes.Cut(s.data, s.mark); ok {
			s.data = after
			return string(before)
		}
		if s.ended {
			t.Fatalf("no mark, %v: %.1000q, want ended false", late, s.data)
		}
		s.more.Wait()
	}
}

func (s *stream) all() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return string(s.data)
}
