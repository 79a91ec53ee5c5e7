//go:build linux

package guest

const (
	minRing  = 4 << 10  // a ring's first size
	keepRing = 64 << 10 // what an empty ring may keep
)

// A ring holds the bytes of a stream from offset start to end. It grows up to max
// as they come. It is not safe for
// concurrent use, but a slice that next returned stays valid until its bytes are
// released, even if the ring grows meanwhile.
type ring struct {
	buf        []byte
	max        int
	start, end uint64
}

func (r *ring) full() bool { return r.end-r.start == uint64(r.max) }

// room returns free space for what comes next; the ring must not be full.
func (r *ring) room() []byte {
	held := int(r.end - r.start)
	if held == len(r.buf) {
		r.grow()
	}
	at := int(r.end % uint64(len(r.buf)))
	return r.buf[at:min(len(r.buf), at+len(r.buf)-held)]
}

func (r *ring) grow() {
	bigger := make([]byte, min(max(2*len(r.buf), minRing), r.max))
	for off := r.start; off < r.end; {
		part := r.next(off)
		for done := 0; done < len(part); {
			n := copy(bigger[(off+uint64(done))%uint64(len(bigger)):], part[done:])
			done += n
		}
		off += uint64(len(part))
	}
	r.buf = bigger
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

// trim gives a large buffer back when nothing is in it. A slice from room must not
// be in use.
func (r *ring) trim() {
	if r.start == r.end && len(r.buf) > keepRing {
		r.buf = nil
	}
}
