package httpgate

import (
	"io"
	"net/http"
	"strconv"
	"time"
)

// Timed gives a client so long to send each piece of a request's body, and to take each piece of the answer, where no Gate does.
func Timed(w http.ResponseWriter, r *http.Request, body, answer time.Duration) (http.ResponseWriter, *http.Request) {
	control := http.NewResponseController(w)
	if r.Body != http.NoBody {
		r = r.WithContext(r.Context()) // a copy
		r.Body = &timedReader{ReadCloser: r.Body, control: control, timeout: body}
	}
	return &timedWriter{ResponseWriter: w, control: control, timeout: answer}, r
}

// A timedReader gives a client so long to send each piece of a body.
type timedReader struct {
	io.ReadCloser
	control *http.ResponseController
	timeout time.Duration
	ended   bool // nothing more can be read
}

func (r *timedReader) Read(p []byte) (int, error) {
	// Where there are no deadlines, the caller's server has its own bounds.
	_ = r.control.SetReadDeadline(time.Now().Add(r.timeout))
	n, err := r.ReadCloser.Read(p)
	r.ended = err != nil
	if err == io.EOF { // now the connection is watched for its end while the answer is made, for however long
		_ = r.control.SetReadDeadline(time.Time{})
	}
	return n, err
}

// maxDiscard bounds what is read of a body that nobody wants.
const maxDiscard = 64 << 20

// serve has a request answered. When the answer is made and a body is left, it sends the answer and reads what is left, for as long as a piece of it may
// take: a connection that is closed while a client sends takes the answer away from it (RFC 9112, 9.6). The answer goes first and as a whole, since a client
// may wait for it before it sends the body, and sends none then.
func serve(next http.Handler, w *timedWriter, r *http.Request) {
	body, ok := r.Body.(*timedReader)
	if !ok || r.ProtoMajor != 1 {
		next.ServeHTTP(w, r)
		return
	}
	answer := &heldWriter{timedWriter: w}
	next.ServeHTTP(answer, r)
	if w.hijacked {
		return
	}
	answer.measure()
	if err := answer.FlushError(); err != nil || body.ended {
		return
	}
	_ = body.control.SetReadDeadline(time.Now().Add(body.timeout))
	_, _ = io.CopyN(io.Discard, body.ReadCloser, maxDiscard)
}

// maxHeld is how much of an answer is held back: what net/http holds back too.
const maxHeld = 2 << 10

// A heldWriter holds the beginning of an answer back until that is flushed or grows. An answer that is whole by then can be told its length.
type heldWriter struct {
	*timedWriter
	status int
	held   []byte
	sent   bool
}

func (w *heldWriter) WriteHeader(status int) {
	switch {
	case w.sent, status < http.StatusOK:
		w.timedWriter.WriteHeader(status)
	case w.status == 0:
		w.status = status
	}
}

func (w *heldWriter) Write(p []byte) (int, error) {
	if !w.sent && len(w.held)+len(p) <= maxHeld {
		w.held = append(w.held, p...)
		return len(p), nil
	}
	if err := w.release(); err != nil {
		return 0, err
	}
	return w.timedWriter.Write(p)
}

// FlushError is for http.ResponseController.
func (w *heldWriter) FlushError() error {
	if err := w.release(); err != nil {
		return err
	}
	return w.timedWriter.FlushError()
}

// release sends what is held back.
func (w *heldWriter) release() error {
	if w.sent {
		return nil
	}
	w.sent = true
	if w.status != 0 {
		w.timedWriter.WriteHeader(w.status)
	}
	if len(w.held) == 0 {
		return nil
	}
	_, err := w.timedWriter.Write(w.held)
	return err
}

// measure tells the length of an answer that is held back as a whole.
func (w *heldWriter) measure() {
	h := w.Header()
	if !w.sent && w.status != http.StatusNoContent && w.status != http.StatusNotModified && h.Get("Content-Length") == "" && h.Get("Trailer") == "" {
		h.Set("Content-Length", strconv.Itoa(len(w.held)))
	}
}
