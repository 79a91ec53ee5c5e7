package agentproto

import (
	"context"
	"errors"
	"io"
)

// maxErrorText bounds the text of an error that travels.
const maxErrorText = 4 << 10

// A message is one that was received and not yet asked for.
type message struct {
	payload []byte
	final   bool
}

// Recv waits for the next message of the other end. After the final one it
// returns io.EOF; a failed call returns its *[Error]; a broken stream a
// *[StreamError], which wraps [ErrStreamLost].
func (c *Call) Recv(ctx context.Context, m Message) (final bool, err error) {
	for {
		c.mu.Lock()
		if len(c.messages) > 0 && !c.dropped {
			return c.take(m)
		}
		term := c.term
		c.mu.Unlock()
		if term != nil {
			return false, term
		}
		select {
		case <-c.wake:
		case <-ctx.Done():
			return false, ctx.Err()
		}
	}
}

// take returns the first message. It is called with mu held and releases it.
func (c *Call) take(m Message) (final bool, err error) {
	first := c.messages[0]
	c.messages[0] = message{}
	c.messages = c.messages[1:]
	c.msgConsumed += messageCost(len(first.payload))
	ack := c.msgConsumed-c.msgAcked >= ackEvery && c.acceptsAcks()
	if ack {
		c.msgAcked = c.msgConsumed
	}
	consumed := c.msgConsumed
	if first.final {
		c.finalRead = true
	}
	collect := c.takeCollect()
	c.mu.Unlock()
	if ack {
		c.sendAck(chanMessages, consumed)
	}
	c.sendCollect(collect)
	if err := Unmarshal(first.payload, m); err != nil {
		c.conn.end(err)
		return false, c.conn.Err()
	}
	return first.final, nil
}

// messageCost is what a message counts against the window. Empty ones are not
// free, or a peer could make this end queue any number of them.
func messageCost(size int) uint64 { return uint64(size) + 64 }

// Send sends a message, waiting while the other end has too many unread.
func (c *Call) Send(m Message) error { return c.send(frameMessage, m) }

// End sends the final message, which ends the call (server end).
func (c *Call) End(m Message) error { return c.send(frameFinal, m) }

// Fail ends the call with an error (server end), which has a code of its own when it is or
// wraps an [Error].
func (c *Call) Fail(why error) error {
	code, msg := CodeInternal, why.Error()
	if known := (*Error)(nil); errors.As(why, &known) {
		code = known.Code
	}
	return c.send(frameError, &Error{Code: code, Msg: msg[:min(len(msg), maxErrorText)]})
}

func (c *Call) send(typ frameType, m Message) error {
	if typ != frameMessage && c.conn.handler == nil {
		return protocolErrorf("only the agent's end can end a call")
	}
	payload := m.append(nil)
	if len(payload) > MaxMessage {
		return tooLarge(len(payload))
	}
	c.mu.Lock()
	// The last message never waits: it is one, and a handler must be able to end.
	for typ == frameMessage && c.term == nil && c.msgSent-c.msgSentAck >= Window {
		c.msgRoom.Wait()
	}
	if c.term != nil {
		defer c.mu.Unlock()
		return c.sendErr()
	}
	c.msgSent += messageCost(len(payload))
	if typ != frameMessage {
		c.terminate(ErrCallEnded)
		if !c.method.collectable() || typ == frameError {
			c.closeDoneLocked()
		}
	}
	c.mu.Unlock()
	if len(payload) > MaxFrame {
		c.conn.fragmenting.Lock()
		defer c.conn.fragmenting.Unlock()
	}
	if err := c.conn.sendFragments(typ, c.id, payload); err != nil {
		return c.conn.lost(err)
	}
	return nil
}

// gotMessage takes a message of the other end.
func (c *Call) gotMessage(typ frameType, payload []byte) error {
	if typ == frameError {
		failure := new(Error)
		if err := Unmarshal(payload, failure); err != nil {
			return err
		}
		failure.Msg = failure.Msg[:min(len(failure.Msg), maxErrorText)]
		c.mu.Lock()
		c.terminate(failure)
		c.closeDoneLocked()
		c.mu.Unlock()
		c.conn.removeCall(c)
		return nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if typ == frameMessage && c.msgReceived-c.msgAcked >= Window {
		return protocolErrorf("more than %d bytes of messages unacknowledged", Window)
	}
	c.msgReceived += messageCost(len(payload))
	if c.dropped {
		return nil
	}
	c.messages = append(c.messages, message{payload: payload, final: typ == frameFinal})
	if typ == frameFinal {
		c.terminate(io.EOF)
		c.closeDoneLocked()
		c.conn.removeCall(c)
		return nil
	}
	c.wakeRecv()
	return nil
}
