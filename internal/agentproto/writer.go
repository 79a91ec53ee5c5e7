package agentproto

import (
	"io"
	"sync"
)

const (
	// maxPending is how many bytes may wait for the stream before senders do.
	maxPending = 128 << 10
	// maxUrgent is how many may wait that were queued by the reading goroutine,
	// which cannot wait: answers to pings and refused calls.
	maxUrgent = 1 << 20
)

// A writer puts frames on the stream, each whole. The sender that finds it idle
// writes at once, in one system call; what others queue meanwhile goes out
// together afterwards.
type writer struct {
	out   io.Writer
	spawn func(func()) // starts a goroutine that the connection waits for
	fail  func(error)  // is called after a failed write, without mu

	mu      sync.Mutex
	room    sync.Cond // pending got shorter, or err was set
	pending []byte
	spare   []byte
	busy    bool // a goroutine is writing
	err     error
}

func newWriter(out io.Writer, spawn func(func()), fail func(error)) *writer {
	w := &writer{out: out, spawn: spawn, fail: fail}
	w.room.L = &w.mu
	return w
}

// frame sends one frame. It waits while the stream is congested.
func (w *writer) frame(h header, payload []byte) error {
	w.mu.Lock()
	for w.err == nil && w.busy && len(w.pending) >= maxPending {
		w.room.Wait()
	}
	if w.err != nil {
		w.mu.Unlock()
		return w.err
	}
	w.queue(h, payload)
	if w.busy {
		w.mu.Unlock()
		return nil
	}
	w.busy = true
	err := w.flushOnce()
	if err == nil && len(w.pending) > 0 {
		// Others kept queueing: they must not cost this sender more time.
		w.spawn(w.flushRest)
	} else {
		w.busy = false
	}
	w.mu.Unlock()
	if err != nil {
		w.fail(err)
	}
	return err
}

// urgent queues a frame without ever waiting, or drops it on a stream that
// cannot be written any more. It is for the goroutine that reads
// the stream: if that waited for the stream, two ends could wait for each other.
func (w *writer) urgent(h header, payload []byte) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.err != nil {
		return nil // no client will read the answer
	}
	if len(w.pending) > maxUrgent {
		return protocolErrorf("the other end asks for answers and does not read them")
	}
	w.queue(h, payload)
	if !w.busy {
		w.busy = true
		w.spawn(w.flushRest)
	}
	return nil
}

// queue is called with mu held.
func (w *writer) queue(h header, payload []byte) {
	h.length = uint32(len(payload))
	w.pending = h.append(w.pending)
	w.pending = append(w.pending, payload...)
}

// flushRest writes until nothing is pending.
func (w *writer) flushRest() {
	w.mu.Lock()
	var err error
	for err == nil && len(w.pending) > 0 {
		err = w.flushOnce()
	}
	w.busy = false
	w.mu.Unlock()
	if err != nil {
		w.fail(err)
	}
}

// flushOnce writes what is pending now. It is called with mu held and busy set,
// and releases mu while it writes.
func (w *writer) flushOnce() error {
	if w.err != nil {
		return w.err
	}
	batch := w.pending
	w.pending, w.spare = w.spare[:0], nil
	w.room.Broadcast()
	w.mu.Unlock()
	_, err := w.out.Write(batch)
	w.mu.Lock()
	if cap(batch) <= maxPending+MaxFrame+headerSize {
		w.spare = batch[:0]
	}
	if err != nil {
		w.setErr(err)
	}
	return w.err
}

// stop makes every later frame fail with err.
func (w *writer) stop(err error) {
	w.mu.Lock()
	w.setErr(err)
	w.mu.Unlock()
}

// setErr is called with mu held.
func (w *writer) setErr(err error) {
	if w.err == nil {
		w.err = err
		w.room.Broadcast()
	}
}
