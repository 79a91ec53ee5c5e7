//go:build linux

package guest

import (
	"errors"
	"io"
	"os"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/llmsandbox/llmsandbox/internal/agentproto"
)

// ptyDrain is how long the end of a terminal's output is waited for: the kernel
// moves it from the program's end to ours in the background.
const ptyDrain = 50 * time.Millisecond

// An output is one stream of a process: a goroutine (pump) reads it into a bounded
// buffer, where the bytes stay until the client has consumed them. When it is full
// nothing more is read, so the program waits. What was consumed last stays as well,
// for MethodLogs.
type output struct {
	file  *os.File
	raw   syscall.RawConn
	gate  *gate // of a pipe; nil for a terminal, which the runtime's poller serves
	tty   bool
	grant func(n int) int // how many of n further bytes are within the limit

	mu        sync.Mutex
	changed   sync.Cond
	news      chan struct{} // closed at the next change; nil while nothing waits for it
	ring      ring
	reserved  bool // the pump is reading into the ring
	total     uint64
	cut       bool // bytes over the output limit were dropped
	closed    bool // no further byte will come
	stopping  bool // the process ended: only what is there is still read
	hungUp    bool // a terminal that nothing had open at the last read
	abandoned bool // no client will ask for it any more
	left      int  // when stopping: how many bytes were there
	finished  chan struct{}
}

func newOutput(f *os.File, tty bool, size int, grant func(int) int) (*output, error) {
	raw, err := f.SyscallConn()
	if err != nil {
		return nil, err
	}
	o := &output{file: f, raw: raw, tty: tty, grant: grant, finished: make(chan struct{})}
	if !tty {
		if o.gate, err = newGate(f); err != nil {
			return nil, resourceError("watch a pipe", err)
		}
	}
	o.changed.L = &o.mu
	o.ring.max, o.ring.keep = size, keepRing
	return o, nil
}

// pump reads until the end of the stream, or until the process has ended and what
// was there is read. After that it reads and discards, so that what was left
// running on purpose is not stopped by a full or broken pipe.
func (o *output) pump() {
	defer o.close()
	more := true
	var flood flood
	for more {
		if !o.waitRoom() {
			break
		}
		n, waited, err := o.fill()
		if errors.Is(err, os.ErrDeadlineExceeded) {
			more = o.drain()
			break
		}
		more = err == nil
		o.commit(n)
		flood.pace(n, waited)
	}
	o.mu.Lock()
	o.closed = true
	o.announce()
	o.mu.Unlock()
	close(o.finished)
	if !more {
		return
	}
	if err := o.setDeadline(time.Time{}); err != nil {
		return
	}
	scratch := make([]byte, minRing)
	for {
		if _, err := o.read(func() []byte { return scratch }, func() {}); err != nil {
			return
		}
	}
}

// fill waits for bytes and reads them into the buffer. While it waits the buffer
// has no space in use, so that an idle process holds no large one.
func (o *output) fill() (n int, waited bool, err error) {
	n, err = o.read(o.reserve, func() { waited = true; o.unreserve() })
	return n, waited, err
}

// A flood is a stream of many small writes. To read each of them would take more time than
// the program itself, out of the same limit of CPU time, so it is let collect for a moment.
type flood struct {
	last  time.Time // of the last read
	quick int       // reads in a row that came at once
}

const (
	floodReads = 16                     // so many quick reads in a row are a flood
	floodQuick = 500 * time.Microsecond // of a read after the one before
	floodSmall = 16 << 10               // bytes of a read that is small
	floodPause = time.Millisecond
)

// pace notes a read, and waits where it belongs to a flood.
func (f *flood) pace(n int, waited bool) {
	now := time.Now()
	if n > floodSmall || waited && now.Sub(f.last) > floodQuick {
		f.quick = 0
	} else {
		f.quick++
	}
	f.last = now
	if f.quick > floodReads {
		time.Sleep(floodPause)
		f.last = time.Now()
	}
}

// drain reads what was in the pipe when the process ended. It reports whether
// another process may still hold the other end.
func (o *output) drain() (more bool) {
	for o.left > 0 {
		if !o.waitRoom() {
			return true
		}
		room := o.reserve()
		n, err := o.readNow(room[:min(len(room), o.left)])
		if n <= 0 {
			return err == unix.EAGAIN
		}
		o.left -= n
		o.commit(n)
	}
	return true
}

// read waits for bytes; the end of the stream is an error. A terminal that nothing has open has
// not ended while the process lives: the process may open it again, and would be hung up if its
// other end were closed.
func (o *output) read(room func() []byte, none func()) (n int, err error) {
	var failed error
	try := func(fd uintptr) bool {
		n, failed = readFD(int(fd), room())
		if failed == unix.EAGAIN || failed == unix.EIO && o.mayReopen() {
			none()
			return false
		}
		return true
	}
	if o.gate != nil {
		err = o.gate.read(try)
	} else {
		err = o.raw.Read(try)
	}
	if err == nil {
		err = failed
	}
	if err == nil && n <= 0 {
		err = io.EOF
	}
	return max(n, 0), err
}

// mayReopen reports whether a terminal that nothing has open may be opened again, and notes that it is so.
func (o *output) mayReopen() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.hungUp = o.tty && !o.stopping
	return o.hungUp
}

func (o *output) readNow(p []byte) (n int, err error) {
	if cerr := o.raw.Control(func(fd uintptr) { n, err = readFD(int(fd), p) }); cerr != nil {
		return 0, cerr
	}
	return n, err
}

// waitRoom waits for space in the buffer; false means that no reader will make any.
func (o *output) waitRoom() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	for !o.abandoned && o.ring.full() {
		o.changed.Wait()
	}
	return !o.abandoned
}

// reserve takes space of the buffer to read into, until commit or unreserve.
func (o *output) reserve() []byte {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.reserved = true
	return o.ring.room()
}

func (o *output) unreserve() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.reserved = false
	o.ring.trim()
}

// commit takes n bytes that were read into the room; those over the process's
// output limit are dropped.
func (o *output) commit(n int) {
	read := max(n, 0)
	n = o.grant(read)
	o.mu.Lock()
	o.reserved, o.hungUp = false, false
	o.cut = o.cut || n < read
	o.ring.commit(n)
	o.total += uint64(n)
	o.announce()
	o.mu.Unlock()
}

// announce wakes what waits for more, or for the end. It is called with mu held.
func (o *output) announce() {
	o.changed.Broadcast()
	if o.news != nil {
		close(o.news)
		o.news = nil
	}
}

// stop reports whether the process has ended: what it wrote is still read, more is not
// waited for.
func (o *output) stop() {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.stopping {
		return
	}
	o.stopping = true
	// A failure to set a deadline means that the pump has closed the file: it is at the end.
	switch {
	case o.hungUp:
		o.left = o.ring.max
		_ = o.file.SetReadDeadline(time.Unix(1, 0))
		return
	case o.closed:
		return
	case o.tty:
		o.left = o.ring.max
		_ = o.file.SetReadDeadline(time.Now().Add(ptyDrain))
		return
	}
	_ = o.raw.Control(func(fd uintptr) {
		if n, err := unix.IoctlGetInt(int(fd), unix.TIOCINQ); err == nil {
			o.left = n
		}
	})
	_ = o.setDeadline(time.Unix(1, 0))
}

// setDeadline ends a wait for bytes at that time.
func (o *output) setDeadline(t time.Time) error {
	if o.gate != nil {
		return o.gate.file.SetReadDeadline(t)
	}
	return o.file.SetReadDeadline(t)
}

func (o *output) close() {
	if o.gate != nil {
		o.gate.file.Close()
	}
	o.file.Close()
}

// abandon gives up what no client has consumed, but for the last of it, and lets the pump end.
func (o *output) abandon() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.abandoned = true
	o.ring.release(o.ring.end)
	o.trim()
	o.changed.Broadcast()
}

// has reports whether the buffer can still be read from offset off on.
func (o *output) has(off uint64) bool {
	start, end := o.bounds()
	return off >= start && off <= end
}

func (o *output) bounds() (start, end uint64) {
	if o == nil {
		return 0, 0
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.ring.start, o.ring.end
}

// release forgets what is before offset off: the client has it.
func (o *output) release(off uint64) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.ring.release(off)
	o.trim()
	o.changed.Broadcast()
}

func (o *output) trim() {
	if !o.reserved {
		o.ring.trim()
	}
}

// send writes the stream from offset off on to a call's channel, until its end or
// until the call has ended; wake must then be called.
func (o *output) send(call *agentproto.Call, ch agentproto.Channel, off uint64) error {
	for {
		o.mu.Lock()
		for o.ring.end == off && !o.closed && !ended(call) {
			o.changed.Wait()
		}
		part := o.ring.next(off)
		o.mu.Unlock()
		if ended(call) {
			return agentproto.ErrCallEnded
		}
		if len(part) == 0 {
			return call.CloseWrite(ch)
		}
		n, err := call.Write(ch, part)
		off += uint64(n)
		if err != nil {
			return err
		}
	}
}

// wake makes send look whether its call has ended.
func (o *output) wake() {
	o.mu.Lock()
	o.changed.Broadcast()
	o.mu.Unlock()
}

func ended(call *agentproto.Call) bool {
	select {
	case <-call.Done():
		return true
	default:
		return false
	}
}

const (
	minRing  = 4 << 10             // a ring's first size
	keepRing = agentproto.KeptLogs // what an empty ring may keep
)

// A ring holds the bytes of a stream from offset start to end. It grows up to max
// as they come. Of those released before start it still has the last ones, from
// offset first on: they make room for new bytes once they are more than keep, or the
// ring cannot grow. It is not safe for concurrent use, but a slice that next returned
// stays valid until its bytes are released, even if the ring grows meanwhile.
type ring struct {
	buf               []byte
	max, keep         int
	first, start, end uint64
}

func (r *ring) full() bool { return r.end-r.start == uint64(r.max) }

// room returns free space for what comes next; the ring must not be full.
func (r *ring) room() []byte {
	if r.held() == len(r.buf) {
		r.makeRoom()
	}
	at := int(r.end % uint64(len(r.buf)))
	return r.buf[at:min(len(r.buf), at+len(r.buf)-r.held())]
}

// held is how many bytes the ring has, with those that are released.
func (r *ring) held() int { return int(r.end - r.first) }

func (r *ring) makeRoom() {
	switch {
	case r.start-r.first > uint64(r.keep):
		r.first = r.start - uint64(r.keep)
	case len(r.buf) < r.max:
		r.resize(min(max(2*len(r.buf), minRing), r.max))
	default:
		r.first = r.start
	}
}

// resize moves the bytes to a buffer of that size, which must have room for them.
func (r *ring) resize(size int) {
	buf := make([]byte, size)
	for off := r.first; off < r.end; {
		part := r.next(off)
		for done := 0; done < len(part); {
			n := copy(buf[(off+uint64(done))%uint64(len(buf)):], part[done:])
			done += n
		}
		off += uint64(len(part))
	}
	r.buf = buf
}

// commit reports whether n bytes were put into room.
func (r *ring) commit(n int) { r.end += uint64(n) }

// next returns bytes from offset off, which lies within the ring.
func (r *ring) next(off uint64) []byte {
	if off == r.end {
		return nil
	}
	at := int(off % uint64(len(r.buf)))
	return r.buf[at:min(len(r.buf), at+int(r.end-off))]
}

// release forgets what is before offset off.
func (r *ring) release(off uint64) {
	if off > r.end {
		off = r.end
	}
	if off <= r.start {
		return
	}
	r.start = off
}

// trim gives a large buffer back when all is released. A slice from room must not be
// in use.
func (r *ring) trim() {
	if r.start < r.end || len(r.buf) <= keepRing {
		return
	}
	r.first = max(r.first, r.end-min(r.end, uint64(r.keep)))
	if r.first == r.end {
		r.buf = nil
		return
	}
	r.resize(keepRing)
}
