package agenthost

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net"
	"testing"
)

// pipe is a stream whose far end is in the test's hand.
type pipe struct{ net.Conn }

func (pipe) Said() string { return "" }

func newPipe(t *testing.T) (*unreadStream, net.Conn) {
	t.Helper()
	near, far := net.Pipe()
	t.Cleanup(func() { near.Close(); far.Close() })
	return &unreadStream{Stream: pipe{near}, in: bufio.NewReader(near)}, far
}

// Waiting for the first bytes leaves them to be read.
func TestSpoken(t *testing.T) {
	s, far := newPipe(t)
	heard := make(chan string, 1)
	go func() {
		hello := make([]byte, 6)
		_, _ = io.ReadFull(far, hello)
		heard <- string(hello)
		_, _ = io.WriteString(far, "hello")
		_ = far.Close()
	}()
	if err := s.spoken(t.Context(), "token\n"); err != nil {
		t.Fatal(err)
	}
	if got := <-heard; got != "token\n" {
		t.Errorf("the agent was sent %q, want \"token\\n\"", got)
	}
	if out, _ := io.ReadAll(s); string(out) != "hello" {
		t.Errorf("left to read: %q, want out = \"hello\"", out)
	}
}

func TestSpokenNever(t *testing.T) {
	s, far := newPipe(t)
	_ = far.Close()
	if err := s.spoken(t.Context(), ""); !errors.Is(err, io.EOF) {
		t.Errorf("got %v, want %v", err, io.EOF)
	}
	s, _ = newPipe(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := s.spoken(ctx, ""); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want %v", err, context.Canceled)
	}
}
