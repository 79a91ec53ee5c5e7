// Package bounded keeps the beginning of output that may be of any length.
package bounded

// A Writer keeps the first bytes that are written to it, and takes the others. It is no
// bytes.Buffer, whose ReadFrom knows no bound.
type Writer struct {
	Most int // bytes are kept
	Kept []byte
	Cut  bool // there were more
}

// Write never fails.
func (w *Writer) Write(p []byte) (int, error) {
	room := w.Most - len(w.Kept)
	w.Cut = w.Cut || len(p) > room
	w.Kept = append(w.Kept, p[:min(len(p), room)]...)
	return len(p), nil
}
