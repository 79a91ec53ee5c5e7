package agentproto

import "encoding/binary"

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
		in := &c.in[ch]
		c.mu.Lock()
		ack, consumed := in.consumed > in.acked && c.acceptsAcks(), in.consumed
		if ack {
			in.acked = consumed
		}
		c.mu.Unlock()
		if ack {
			c.sendAck(uint8(ch), consumed)
		}
	}
}

// sendAck acknowledges bytes. A failure needs no attention here: it ends the
// stream, which a later Read or Recv returns.
func (c *Call) sendAck(arg uint8, consumed uint64) {
	_ = c.conn.w.frame(header{typ: frameAck, arg: arg, call: c.id}, binary.LittleEndian.AppendUint64(nil, consumed))
}
