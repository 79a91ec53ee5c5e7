package engine

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net"
	"testing"
)

// spokenStream is a stream whose far end is in the test's hand.
func spokenStream(t *testing.T) (*stream, net.Conn) {
	t.Helper()
	near, far := net.Pipe()
	t.Cleanup(func() { near.Close(); far.Close() })
	return &stream{conn: near, in: bufio.NewReader(near)}, far
}

// Waiting for the first words leaves them to be read.
func TestSpoken(t *testing.T) {
	s, far := spokenStream(t)
	go func() {
		_, _ = io.WriteString(far, frame(frameStderr, "oh")+frame(frameStdout, "")+frame(frameStdout, "hello"))
		_ = far.Close()
	}()
	if err := s.spoken(t.Context()); err != nil {
		t.Fatal(err)
	}
	if out, _ := io.ReadAll(s); string(out) != "hello" {
		t.Errorf("left to read: %q", out)
	}
}

func TestSpokenNever(t *testing.T) {
	s, far := spokenStream(t)
	_ = far.Close()
	if err := s.spoken(t.Context()); !errors.Is(err, io.EOF) {
		t.Errorf("%v", err)
	}
	s, _ = spokenStream(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := s.spoken(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
}
