package httpgate

import (
	"bytes"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"testing"
	"time"
)

// A client that does not read is not waited for.
func TestAbuse87SlowReader(t *testing.T) {
	failed := make(chan error, 1)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := &http.Server{Handler: http.HandlerFunc(func(response http.ResponseWriter, _ *http.Request) {
		w := &timedWriter{ResponseWriter: response, control: http.NewResponseController(response), timeout: 100 * time.Millisecond}
		defer w.extend()
		piece := bytes.Repeat([]byte{'x'}, 1<<20)
		for {
			if _, err := w.Write(piece); err != nil {
				failed <- err
				return
			}
		}
	})}
	done := make(chan error, 1)
	go func() { done <- server.Serve(l) }()
	conn, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.WriteString(conn, "GET / HTTP/1.1\r\nHost: x\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	if err := <-failed; err == nil {
		t.Error("written without end: got no error, want an error")
	}
	if err := errors.Join(conn.Close(), server.Close()); err != nil {
		t.Error(err)
	}
	<-done
}

// TestSlowReaderOfConnection: nor is one of a connection that a handler has taken over.
func TestSlowReaderOfConnection(t *testing.T) {
	failed := make(chan error, 1)
	s := httptest.NewServer(http.HandlerFunc(func(response http.ResponseWriter, _ *http.Request) {
		w := &timedWriter{ResponseWriter: response, control: http.NewResponseController(response), timeout: 100 * time.Millisecond}
		conn, _, err := http.NewResponseController(w).Hijack()
		if err != nil {
			failed <- err
			return
		}
		defer conn.Close()
		w.WriteHeader(http.StatusTeapot) // nobody gets it
		for piece := bytes.Repeat([]byte{'x'}, 1<<20); err == nil; {
			_, err = conn.Write(piece)
		}
		failed <- err
	}))
	defer s.Close()
	conn, err := net.Dial("tcp", s.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if _, err := io.WriteString(conn, "GET / HTTP/1.1\r\nHost: x\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	if err := <-failed; !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("written without end: %v, want that its time is over", err)
	}
	if b, err := io.ReadAll(io.LimitReader(conn, 10)); string(b) != "xxxxxxxxxx" {
		t.Errorf("got %q, %v, want what the handler wrote, and no status", b, err)
	}
}
