package agentproto

import (
	"bufio"
	"context"
	"encoding/binary"
	"io"
	"math"
	"strconv"
	"sync"
	"time"

	"github.com/llmsandbox/llmsandbox/internal/wire"
)

// maxCalls is how many calls may be in flight on one stream.
const maxCalls = 1024

// drainTime is how long a stream that cannot be written any more is still read.
const drainTime = 2 * time.Second

// A Handler serves the calls that the other end opens, each on its own goroutine.
// A call that it leaves without End or Fail fails with CodeInternal.
type Handler interface{ ServeCall(*Call) }

// A Conn is one end of a protocol stream. Its methods may be called concurrently.
type Conn struct {
	rwc     io.ReadWriteCloser
	br      *bufio.Reader // of the read loop alone
	peer    Hello
	handler Handler // nil at the client's end
	w       *writer
	partial partial  // of the read loop alone
	scratch [16]byte // of the read loop alone: a header or a short payload

	// fragmenting is held while a message is sent in fragments, and opening from
	// taking a call's number to sending it, so that numbers grow on the stream.
	// One that needs both takes fragmenting first.
	fragmenting sync.Mutex
	opening     sync.Mutex

	mu         sync.Mutex
	calls      map[uint32]*Call
	lastCall   uint32 // the highest number used so far
	pings      map[uint64]chan struct{}
	lastPing   uint64
	err        error
	drain      *time.Timer // set once a write has failed
	done       chan struct{}
	goroutines sync.WaitGroup
}

func newConn(rwc io.ReadWriteCloser, br *bufio.Reader, peer Hello, h Handler) *Conn {
	c := &Conn{
		rwc:     rwc,
		br:      br,
		peer:    peer,
		handler: h,
		calls:   make(map[uint32]*Call),
		pings:   make(map[uint64]chan struct{}),
		done:    make(chan struct{}),
	}
	c.w = newWriter(rwc, c.spawn, c.writeFailed)
	return c
}

func (c *Conn) spawn(f func()) { c.goroutines.Go(f) }

// Peer is the other end's Hello.
func (c *Conn) Peer() Hello { return c.peer }

// Done is closed when the stream has ended; Err then returns why.
func (c *Conn) Done() <-chan struct{} { return c.done }

// Err reports why the stream ended, as a *[StreamError]; nil while it lives.
func (c *Conn) Err() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.err
}

// Failing reports whether a write has failed, so that no further call can be made. The stream ends
// once what the other end sent before is read, after two seconds at most.
func (c *Conn) Failing() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.err != nil || c.drain != nil
}

// Close ends the stream, and with it every call, and waits for the connection's
// goroutines. It is idempotent.
func (c *Conn) Close() error {
	c.end(errClosed)
	<-c.done // another goroutine may be ending it
	c.goroutines.Wait()
	return nil
}

// end ends the stream: every call gets a *StreamError with that cause.
func (c *Conn) end(cause error) {
	lost := &StreamError{Err: cause}
	c.mu.Lock()
	if c.err != nil {
		c.mu.Unlock()
		return
	}
	c.err = lost
	if c.drain != nil {
		c.drain.Stop()
	}
	calls := c.calls
	c.calls = nil
	c.mu.Unlock()
	c.w.stop(lost)
	c.rwc.Close()
	for _, call := range calls {
		call.lose(lost)
	}
	close(c.done)
}

// writeFailed ends the stream once what the other end sent before is read: the
// result of a call may be among it.
func (c *Conn) writeFailed(cause error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.err == nil && c.drain == nil {
		c.drain = time.AfterFunc(drainTime, func() { c.end(cause) })
	}
}

// Open starts a call. It fails with CodeBusy when 1024 are in flight, and with
// CodeTooLarge when the request is over MaxMessage.
func (c *Conn) Open(m Method, req Message) (*Call, error) {
	payload := wire.Append([]byte{byte(m)}, req)
	if len(payload) > MaxMessage {
		return nil, tooLarge(len(payload))
	}
	if len(payload) > MaxFrame {
		c.fragmenting.Lock()
		defer c.fragmenting.Unlock()
	}
	c.opening.Lock()
	defer c.opening.Unlock()
	call, err := c.addCall(m)
	if err != nil {
		return nil, err
	}
	if err := c.sendFragments(frameCall, call.id, payload); err != nil {
		c.removeCall(call)
		return nil, c.lost(err)
	}
	return call, nil
}

// lost is the error of a call that could not write to the stream.
func (c *Conn) lost(err error) error {
	if _, ok := err.(*StreamError); ok {
		return err
	}
	return &StreamError{Err: err}
}

// sendFragments sends a message's payload, which is over MaxFrame only with
// c.fragmenting held.
func (c *Conn) sendFragments(typ frameType, id uint32, payload []byte) error {
	last := wholeMessage
	for len(payload) > MaxFrame {
		if err := c.w.frame(header{typ: typ, arg: fragment, call: id}, payload[:MaxFrame]); err != nil {
			return err
		}
		payload = payload[MaxFrame:]
		last = lastFragment
	}
	return c.w.frame(header{typ: typ, arg: last, call: id}, payload)
}

// Ping waits for the other end's answer to a ping.
func (c *Conn) Ping(ctx context.Context) error {
	answer := make(chan struct{})
	c.mu.Lock()
	if c.err != nil {
		c.mu.Unlock()
		return c.err
	}
	c.lastPing++
	token := c.lastPing
	c.pings[token] = answer
	c.mu.Unlock()
	defer func() {
		c.mu.Lock()
		delete(c.pings, token)
		c.mu.Unlock()
	}()
	if err := c.w.frame(header{typ: framePing}, binary.LittleEndian.AppendUint64(nil, token)); err != nil {
		return c.lost(err)
	}
	select {
	case <-answer:
		return nil
	case <-c.done:
		return c.Err()
	case <-ctx.Done():
		return ctx.Err()
	}
}

// addCall makes a call of this end's own.
func (c *Conn) addCall(m Method) (*Call, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.err != nil {
		return nil, c.err
	}
	if len(c.calls) >= maxCalls {
		return nil, &Error{Code: CodeBusy, Msg: "1024 calls are in flight on this stream to the agent: wait for some, or open another stream"}
	}
	if c.lastCall == math.MaxUint32 {
		return nil, &Error{Code: CodeBusy, Msg: "this stream to the agent has used up its call numbers: open another one"}
	}
	c.lastCall++
	call := newCall(c, c.lastCall, m)
	c.calls[call.id] = call
	return call, nil
}

func (c *Conn) removeCall(call *Call) {
	c.mu.Lock()
	delete(c.calls, call.id)
	c.mu.Unlock()
}

// serve runs the handler for a call of the other end.
func (c *Conn) serve(call *Call) {
	c.handler.ServeCall(call)
	call.Fail(Errorf(CodeInternal, "the agent ended the call without an answer"))
	c.removeCall(call)
	call.closeDone()
}

func tooLarge(size int) *Error {
	return &Error{Code: CodeTooLarge, Msg: "a message of " + strconv.Itoa(size) + " bytes is more than the " + strconv.Itoa(MaxMessage) + " that the protocol allows"}
}
