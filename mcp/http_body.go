package mcp

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"os"
	"time"
)

// boundBody gives a request's body so long to come, whether it is read here or thrown
// away by net/http after a refusal.
func boundBody(w http.ResponseWriter, within time.Duration) *fault {
	if err := http.NewResponseController(w).SetReadDeadline(time.Now().Add(within)); err != nil && !errors.Is(err, http.ErrNotSupported) {
		return newFault(http.StatusInternalServerError, "bound the time of the body: %v", err)
	}
	return nil
}

// readBody takes a request's body before the request is acted on, so that a client that
// sends slowly or too much holds nothing but its own connection.
func readBody(w http.ResponseWriter, r *http.Request, most int64) *fault {
	if r.ContentLength > most {
		return tooLarge(most)
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, most))
	var large *http.MaxBytesError
	switch {
	case errors.As(err, &large):
		return tooLarge(most)
	case errors.Is(err, os.ErrDeadlineExceeded):
		return newFault(http.StatusRequestTimeout, "the body did not come in time")
	case err != nil:
		return newFault(http.StatusBadRequest, "read the body: it ended too early")
	}
	// The connection is watched for its end while the answer is made, for however long.
	if err := http.NewResponseController(w).SetReadDeadline(time.Time{}); err != nil && !errors.Is(err, http.ErrNotSupported) {
		return newFault(http.StatusInternalServerError, "unbound the time of the connection: %v", err)
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	return nil
}

func tooLarge(most int64) *fault {
	return newFault(http.StatusRequestEntityTooLarge, "the body is larger than the %d bytes that this server takes", most)
}

// A timedWriter gives a client so long to take each piece of a response, which as a whole
// may be a stream without end.
type timedWriter struct {
	http.ResponseWriter
	control *http.ResponseController
	within  time.Duration
}

func newTimedWriter(w http.ResponseWriter, within time.Duration) *timedWriter {
	return &timedWriter{w, http.NewResponseController(w), within}
}

func (w *timedWriter) Write(p []byte) (int, error) {
	w.extend()
	return w.ResponseWriter.Write(p)
}

// FlushError is for http.ResponseController.
func (w *timedWriter) FlushError() error {
	w.extend()
	return w.control.Flush()
}

// Unwrap is for http.ResponseController.
func (w *timedWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// finish gives what net/http still has to send its time.
func (w *timedWriter) finish() { w.extend() }

func (w *timedWriter) extend() {
	// Where there are no deadlines, the caller's server has its own bounds.
	_ = w.control.SetWriteDeadline(time.Now().Add(w.within))
}
