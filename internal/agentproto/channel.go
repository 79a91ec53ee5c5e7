package agentproto

import (
	"encoding/binary"
	"io"
	"sync"
)

// inbound is a channel that this end reads. The call's mu guards it.
type inbound struct {
	ready    sync.Cond // something changed for a waiting Read
	chunks   []*chunk
	filling  bool // the read loop writes into the last chunk
	received uint64
	consumed uint64
	acked    uint64 // of consumed, what was acknowledged
	eof      bool
}

// outbound is a channel that this end writes. The call's mu guards it.
type outbound struct {
	room   sync.Cond // something changed for a waiting Write
	sent   uint64
	acked  uint64
	closed bool
}

// reads reports whether this end reads ch rather than writing it.
func (c *Call) reads(ch Channel) bool {
	return (ch == ChanIn) == (c.conn.handler != nil)
}

// Write sends p on a channel, waiting while the channel's window is full. It
// keeps nothing of p. n counts what was handed to the stream.
func (c *Call) Write(ch Channel, p []byte) (n int, err error) {
	if ch > lastChannel || c.reads(ch) {
		return 0, protocolErrorf("this end does not write channel %d", ch)
	}
	out := &c.out[ch]
	for n < len(p) {
		c.mu.Lock()
		for c.term == nil && !out.closed && out.sent-out.acked >= Window {
			out.room.Wait()
		}
		if c.term != nil || out.closed {
			defer c.mu.Unlock()
			return n, c.sendErr()
		}
		part := p[n:]
		part = part[:min(len(part), MaxFrame, int(Window-(out.sent-out.acked)))]
		out.sent += uint64(len(part))
		c.mu.Unlock()
		if err := c.conn.w.frame(header{typ: frameData, arg: uint8(ch), call: c.id}, part); err != nil {
			return n, c.conn.lost(err)
		}
		n += len(part)
	}
	return n, nil
}

// CloseWrite ends a channel: the other end reads io.EOF after what was written.
func (c *Call) CloseWrite(ch Channel) error {
	if ch > lastChannel || c.reads(ch) {
		return protocolErrorf("this end does not write channel %d", ch)
	}
	out := &c.out[ch]
	c.mu.Lock()
	if c.term != nil || out.closed {
		defer c.mu.Unlock()
		if out.closed {
			return nil
		}
		return c.sendErr()
	}
	out.closed = true
	out.room.Broadcast()
	c.mu.Unlock()
	if err := c.conn.w.frame(header{typ: frameEOF, arg: uint8(ch), call: c.id}, nil); err != nil {
		return c.conn.lost(err)
	}
	return nil
}

// Read reads from a channel and acknowledges what it returns. What came before
// the end of the call is returned first; then io.EOF if the channel or the call
// ended well, or else the call's error.
func (c *Call) Read(ch Channel, p []byte) (int, error) {
	if ch > lastChannel || !c.reads(ch) {
		return 0, protocolErrorf("this end does not read channel %d", ch)
	}
	if len(p) == 0 {
		return 0, nil
	}
	in := &c.in[ch]
	c.mu.Lock()
	for {
		if c.dropped {
			defer c.mu.Unlock()
			return 0, c.term
		}
		if len(in.chunks) > 0 && in.chunks[0].r < in.chunks[0].w {
			break
		}
		if in.eof || c.term != nil {
			err := c.term
			if in.eof {
				err = io.EOF
			}
			c.mu.Unlock()
			return 0, err
		}
		in.ready.Wait()
	}
	head := in.chunks[0]
	unread := head.buf[head.r:head.w]
	c.mu.Unlock()
	n := copy(p, unread)
	c.mu.Lock()
	head.r += n
	in.consumed += uint64(n)
	if head.r == head.w && (len(in.chunks) > 1 || !in.filling) {
		in.chunks[0] = nil
		in.chunks = in.chunks[1:]
		head.free()
	}
	due := in.consumed-in.acked >= ackEvery
	collect := c.takeCollect()
	c.mu.Unlock()
	if due {
		c.acknowledge(ch, ackEvery)
	}
	c.sendCollect(collect)
	return n, nil
}

// gotData takes n bytes of data off the stream, and returns how many of them are
// left on it because no reader wants them.
func (c *Call) gotData(ch Channel, n int) (left int, err error) {
	if !c.reads(ch) {
		return n, protocolErrorf("data on channel %d, which flows the other way", ch)
	}
	in := &c.in[ch]
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case in.eof:
		return n, protocolErrorf("data on channel %d after its end", ch)
	case in.received+uint64(n)-in.acked > Window:
		return n, protocolErrorf("channel %d has more than its window of %d bytes unacknowledged", ch, Window)
	}
	in.received += uint64(n)
	for n > 0 && !c.dropped {
		if len(in.chunks) == 0 || in.last().full() {
			in.chunks = append(in.chunks, newChunk(n))
		}
		last := in.last()
		space := last.buf[last.w:min(len(last.buf), last.w+n)]
		in.filling = true
		c.mu.Unlock()
		_, err := io.ReadFull(c.conn.br, space)
		c.mu.Lock()
		in.filling = false
		if err != nil {
			return n, err
		}
		last.w += len(space)
		n -= len(space)
		in.ready.Signal()
	}
	return n, nil
}

func (in *inbound) last() *chunk { return in.chunks[len(in.chunks)-1] }

func (k *chunk) full() bool { return k.w == len(k.buf) }

func (c *Call) gotEOF(ch Channel) error {
	if !c.reads(ch) {
		return protocolErrorf("the end of channel %d, which flows the other way", ch)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.in[ch].eof {
		return protocolErrorf("channel %d ends twice", ch)
	}
	c.in[ch].eof = true
	c.in[ch].ready.Broadcast()
	return nil
}

// smallChunk is the capacity of the chunk that a small piece of data starts; a
// piece that does not fit starts one of MaxFrame.
const smallChunk = 4 << 10

// A chunk holds received bytes that have not been read yet: buf[r:w]. The reading
// goroutine appends, the consumer takes off the front.
type chunk struct {
	buf  []byte
	r, w int
}

var (
	smallChunks = sync.Pool{New: func() any { return &chunk{buf: make([]byte, smallChunk)} }}
	largeChunks = sync.Pool{New: func() any { return &chunk{buf: make([]byte, MaxFrame)} }}
)

func newChunk(size int) *chunk {
	if size <= smallChunk {
		return smallChunks.Get().(*chunk)
	}
	return largeChunks.Get().(*chunk)
}

func (k *chunk) free() {
	k.r, k.w = 0, 0
	if len(k.buf) == smallChunk {
		smallChunks.Put(k)
	} else {
		largeChunks.Put(k)
	}
}

// ackEvery is after how many consumed bytes they are acknowledged.
const ackEvery = Window / 4

// Acked is how many bytes written to a channel the other end is known to have
// consumed. It is reported in steps of a part of the window, so the last bytes may
// stay unacknowledged until the call is collected.
func (c *Call) Acked(ch Channel) uint64 {
	if ch > lastChannel {
		return 0
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.out[ch].acked
}

// AckSignal is signalled (capacity 1) when Acked grows.
func (c *Call) AckSignal() <-chan struct{} { return c.ackSig }

func (c *Call) gotAck(arg uint8, consumed uint64) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if arg == chanMessages {
		if consumed < c.msgSentAck || consumed > c.msgSent {
			return protocolErrorf("%d message bytes acknowledged of %d", consumed, c.msgSent)
		}
		c.msgSentAck = consumed
		c.msgRoom.Broadcast()
		return nil
	}
	if c.reads(Channel(arg)) {
		return protocolErrorf("an acknowledgement for channel %d, which flows the other way", arg)
	}
	out := &c.out[arg]
	if consumed < out.acked || consumed > out.sent {
		return protocolErrorf("%d bytes of channel %d acknowledged, of %d sent", consumed, arg, out.sent)
	}
	out.acked = consumed
	out.room.Broadcast()
	select {
	case c.ackSig <- struct{}{}:
	default:
	}
	return nil
}

// Acknowledge tells the other end what has been read of all channels, which Read does only now
// and then.
func (c *Call) Acknowledge() {
	for ch := range c.in {
		c.acknowledge(Channel(ch), 1)
	}
}

// acknowledge acknowledges what was read of a channel, once it is at least so many bytes more
// than before. It is called by several at a time, and an acknowledgement must not overtake
// a later one: that would end the stream.
func (c *Call) acknowledge(ch Channel, least uint64) {
	c.acking.Lock()
	defer c.acking.Unlock()
	in := &c.in[ch]
	c.mu.Lock()
	consumed := in.consumed
	ack := consumed-in.acked >= least && c.acceptsAcks()
	if ack {
		in.acked = consumed
	}
	c.mu.Unlock()
	if ack {
		c.sendAck(uint8(ch), consumed)
	}
}

// sendAck acknowledges bytes. A failure needs no attention here: it ends the
// stream, which a later Read or Recv returns.
func (c *Call) sendAck(arg uint8, consumed uint64) {
	_ = c.conn.w.frame(header{typ: frameAck, arg: arg, call: c.id}, binary.LittleEndian.AppendUint64(nil, consumed))
}
