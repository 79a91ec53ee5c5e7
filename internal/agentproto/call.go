package agentproto

import (
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
