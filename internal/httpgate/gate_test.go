package httpgate

import (
	"bytes"
	"errors"
	"io"
	"net"
	"net/http"
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
		w := &timedWriter{response, http.NewResponseController(response), 100 * time.Millisecond}
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
