package agentproto

import (
	"context"
	"errors"
	"io"
	"sync"
)

// A Call is one end of a call: messages one at a time, and channels of bytes
// with a window each. Methods may be used from several goroutines, but only
// one at a time may Read one channel, or Write one channel, or Recv.
type Call struct {
	conn    *Conn
	id      uint32
	method  Method
	request []byte

	done   chan struct{}
	wake   chan struct{} // for Recv: messages or term changed
	ackSig chan struct{}

	acking sync.Mutex // held while an acknowledgement of a channel is sent; before mu

	mu  sync.Mutex
	in  [lastChannel + 1]inbound
	out [lastChannel + 1]outbound
	// term is why the call ended, nil while it lives: io.EOF after the final
	// message, an *Error, a *StreamError, or ErrCallEnded at the end that sent
	// the last message. What was received before is still delivered, unless
	// dropped is set.
	term      error
	dropped   bool
	doneOnce  bool // done is closed
	finalRead bool // Recv has returned the final message
	collected bool // a collect frame was sent or received

	messages    []message
	msgReceived uint64 // bytes of messages received
	msgConsumed uint64 // and returned by Recv
	msgAcked    uint64 // and acknowledged
	msgSent     uint64
	msgSentAck  uint64 // of msgSent, what the other end has acknowledged
	msgRoom     sync.Cond
}

func newCall(conn *Conn, id uint32, m Method) *Call {
	c := &Call{
		conn:   conn,
		id:     id,
		method: m,
		done:   make(chan struct{}),
		wake:   make(chan struct{}, 1),
		ackSig: make(chan struct{}, 1),
	}
	for i := range c.in {
		c.in[i].ready.L = &c.mu
		c.out[i].room.L = &c.mu
	}
	c.msgRoom.L = &c.mu
	return c
}

// Method is the call's method.
func (c *Call) Method() Method { return c.method }

// Request decodes the call's request into m (server end). An error is an [Error], which
// the call can be answered with.
func (c *Call) Request(m Message) error {
	if err := Unmarshal(c.request, m); err != nil {
		return Errorf(CodeBadRequest, "%v", err)
	}
	return nil
}

// Done is closed when the call has ended, was cancelled, or the stream has ended.
// At the server's end of MethodStart and MethodAttach, whose results must not get
// lost, it is after End closed only once one of these is known: [Call.Collected],
// cancelled, or the stream has ended.
func (c *Call) Done() <-chan struct{} { return c.done }

// Cancel tells the other end that the call is no longer wanted, and ends it here:
// what was received and not read is dropped. At the server's end it is Fail with
// CodeCancelled.
func (c *Call) Cancel() {
	if c.conn.handler != nil {
		_ = c.Fail(Errorf(CodeCancelled, "the agent cancelled the call"))
		return
	}
	c.mu.Lock()
	live := c.term == nil
	tell := live || c.method.collectable() && c.term == io.EOF && !c.collected
	c.drop()
	c.mu.Unlock()
	if tell {
		c.conn.removeCall(c)
		// A failure ends the stream, and so the call at the other end too.
		_ = c.conn.w.frame(header{typ: frameCancel, call: c.id}, nil)
	}
	c.closeDone()
}

// Hangup ends the call's whole stream, and with it all its calls: for another end that
// does not read what it is sent, so that nothing less would reach it.
func (c *Call) Hangup() { c.conn.end(errHungUp) }

// drop ends the call as cancelled. It is called with mu held.
func (c *Call) drop() {
	cancelled := &Error{Code: CodeCancelled, Msg: "the call was cancelled"}
	c.terminate(cancelled)
	if c.term == io.EOF {
		c.term = cancelled
	}
	c.dropped = true
	c.messages = nil
	for i := range c.in {
		c.in[i].ready.Broadcast()
	}
	c.wakeRecv()
}

// terminate sets why the call ended, unless it already has, and wakes all that
// wait for it. It is called with mu held.
func (c *Call) terminate(why error) {
	if c.term != nil {
		return
	}
	c.term = why
	for i := range c.in {
		c.in[i].ready.Broadcast()
		c.out[i].room.Broadcast()
	}
	c.msgRoom.Broadcast()
	c.wakeRecv()
}

func (c *Call) wakeRecv() {
	select {
	case c.wake <- struct{}{}:
	default:
	}
}

func (c *Call) closeDone() {
	c.mu.Lock()
	c.closeDoneLocked()
	c.mu.Unlock()
}

func (c *Call) closeDoneLocked() {
	if !c.doneOnce {
		c.doneOnce = true
		close(c.done)
	}
}

// lose ends the call because the stream has.
func (c *Call) lose(why *StreamError) {
	c.mu.Lock()
	c.terminate(why)
	c.closeDoneLocked()
	c.mu.Unlock()
}

// gotEnd handles the client's frame that ends or collects the call.
func (c *Call) gotEnd(typ frameType) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if typ == frameCollect {
		// Only what has been sent can have been collected.
		c.collected = c.term == ErrCallEnded
	}
	c.drop()
	c.closeDoneLocked()
}

// sendErr is what sending returns once the call has ended or the channel is
// closed. It is called with mu held.
func (c *Call) sendErr() error {
	if c.term == nil || c.term == io.EOF {
		return ErrCallEnded
	}
	return c.term
}

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
	payload := Marshal(m)
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

// Collected reports, at the server's end of MethodStart and MethodAttach, that the
// client has consumed the final message and every byte of every channel.
func (c *Call) Collected() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.collected
}

// acceptsAcks reports whether the other end still wants to know what was consumed.
// It is called with mu held.
func (c *Call) acceptsAcks() bool {
	return c.term == nil || c.term == io.EOF && c.method.collectable()
}

// collectable reports whether the server wants to know when the client has consumed
// everything, because otherwise another client may ask for it.
func (m Method) collectable() bool { return m == MethodStart || m == MethodAttach }

// takeCollect reports whether it is time to tell the server that everything was
// consumed. It is called with mu held.
func (c *Call) takeCollect() bool {
	if c.conn.handler != nil || !c.finalRead || c.collected || c.dropped || !c.method.collectable() {
		return false
	}
	for i := range c.in {
		if c.in[i].consumed < c.in[i].received {
			return false
		}
	}
	c.collected = true
	return true
}

func (c *Call) sendCollect(due bool) {
	if due {
		// A failure ends the stream: then the server keeps the result.
		_ = c.conn.w.frame(header{typ: frameCollect, call: c.id}, nil)
	}
}
