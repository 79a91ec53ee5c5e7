package agentproto

import (
	"encoding/binary"
	"io"
)

type frameType uint8

// The frame types. Those of a call name it; "client" and "server" tell which end
// may send them.
const (
	frameHello   frameType = iota + 1 // both, first: a Hello
	frameCall                         // client: opens a call: method byte, request
	frameMessage                      // both: a message
	frameFinal                        // server: the last message
	frameError                        // server: the call has failed: an Error
	frameData                         // both: bytes of a channel
	frameEOF                          // both: a channel ends
	frameAck                          // both: how many bytes of a channel were consumed, u64
	frameCancel                       // client: the call is no longer wanted
	frameCollect                      // client: the final message and all bytes were consumed
	framePing                         // both: u64, which the pong returns
	framePong                         // both
)

// headerSize is the length of a frame's header.
const headerSize = 10

// chanMessages is the arg of an ack frame that acknowledges message bytes.
const chanMessages = uint8(lastChannel) + 1

// The arg of a frame that carries a message: all of it, or a fragment.
const (
	wholeMessage uint8 = iota
	fragment           // more of them follow
	lastFragment
)

type header struct {
	length uint32
	typ    frameType
	arg    uint8
	call   uint32
}

func (h header) append(b []byte) []byte {
	b = binary.LittleEndian.AppendUint32(b, h.length)
	b = append(b, byte(h.typ), h.arg)
	return binary.LittleEndian.AppendUint32(b, h.call)
}

func parseHeader(b []byte) header {
	return header{
		length: binary.LittleEndian.Uint32(b),
		typ:    frameType(b[4]),
		arg:    b[5],
		call:   binary.LittleEndian.Uint32(b[6:]),
	}
}

// check refuses what no frame of that type may have, from either end.
func (h header) check() error {
	if h.length > MaxFrame {
		return protocolErrorf("a frame of %d bytes, more than %d", h.length, MaxFrame)
	}
	var maxArg uint8
	size := -1 // exact length, where there is one
	switch h.typ {
	case frameHello:
	case frameCall, frameMessage, frameFinal, frameError:
		maxArg = lastFragment
	case frameData:
		maxArg = uint8(lastChannel)
		if h.length == 0 {
			return protocolErrorf("a data frame without data")
		}
	case frameEOF:
		maxArg, size = uint8(lastChannel), 0
	case frameAck:
		maxArg, size = chanMessages, 8
	case frameCancel, frameCollect:
		size = 0
	case framePing, framePong:
		size = 8
	default:
		return protocolErrorf("a frame of unknown type %d", h.typ)
	}
	if h.arg > maxArg {
		return protocolErrorf("a frame of type %d with argument %d", h.typ, h.arg)
	}
	if size >= 0 && h.length != uint32(size) {
		return protocolErrorf("a frame of type %d with %d bytes, not %d", h.typ, h.length, size)
	}
	onConn := h.typ == frameHello || h.typ == framePing || h.typ == framePong
	if onConn != (h.call == 0) {
		return protocolErrorf("a frame of type %d for call %d", h.typ, h.call)
	}
	return nil
}

// A partial is a message of which not all fragments have come.
type partial struct {
	typ  frameType
	call uint32
	buf  []byte
}

// readLoop reads frames until the stream ends.
func (c *Conn) readLoop() {
	for {
		if err := c.readFrame(); err != nil {
			c.end(err)
			return
		}
	}
}

func (c *Conn) readFrame() error {
	raw := c.scratch[:headerSize]
	if _, err := io.ReadFull(c.br, raw); err != nil {
		return err
	}
	h := parseHeader(raw)
	if err := h.check(); err != nil {
		return err
	}
	switch h.typ {
	case frameHello:
		return protocolErrorf("a second hello")
	case frameData:
		return c.readData(h)
	case frameCall, frameMessage, frameFinal, frameError:
		return c.readMessage(h)
	}
	payload := c.scratch[:h.length]
	if _, err := io.ReadFull(c.br, payload); err != nil {
		return noEOF(err)
	}
	switch h.typ {
	case framePing:
		return c.w.urgent(header{typ: framePong}, payload)
	case framePong:
		return c.pong(binary.LittleEndian.Uint64(payload))
	}
	call, err := c.find(h)
	if call == nil {
		return err
	}
	switch h.typ {
	case frameEOF:
		return call.gotEOF(Channel(h.arg))
	case frameAck:
		return call.gotAck(h.arg, binary.LittleEndian.Uint64(payload))
	default: // frameCancel, frameCollect
		if c.handler == nil {
			return protocolErrorf("the agent sent a frame of type %d, which only its client may", h.typ)
		}
		call.gotEnd(h.typ)
		return nil
	}
}

// find returns the call that a frame is for, or nil when that has ended and the
// frame is only late.
func (c *Conn) find(h header) (*Call, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if h.call > c.lastCall {
		return nil, protocolErrorf("a frame of type %d for call %d, which nobody opened", h.typ, h.call)
	}
	return c.calls[h.call], nil
}

func (c *Conn) pong(token uint64) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if token > c.lastPing {
		return protocolErrorf("an answer to a ping that was not sent")
	}
	if answer, ok := c.pings[token]; ok {
		close(answer)
		delete(c.pings, token)
	}
	return nil
}

func (c *Conn) readData(h header) error {
	call, err := c.find(h)
	if err != nil {
		return err
	}
	n := int(h.length)
	if call != nil {
		n, err = call.gotData(Channel(h.arg), n)
		if err != nil {
			return noEOF(err)
		}
	}
	_, err = c.br.Discard(n)
	return noEOF(err)
}

// readMessage reads a message or a fragment of one.
func (c *Conn) readMessage(h header) error {
	payload, err := c.readPayload(h)
	if payload == nil || err != nil {
		return err
	}
	if h.typ == frameCall {
		return c.gotCall(h.call, payload)
	}
	if h.typ != frameMessage && c.handler != nil {
		return protocolErrorf("the client sent a frame of type %d, which only the agent may", h.typ)
	}
	call, err := c.find(h)
	if call == nil {
		return err
	}
	return call.gotMessage(h.typ, payload)
}

// readPayload returns the payload of a message once all of it is there, before
// that nil.
func (c *Conn) readPayload(h header) ([]byte, error) {
	if h.arg == wholeMessage {
		payload := make([]byte, h.length)
		_, err := io.ReadFull(c.br, payload)
		return payload, noEOF(err)
	}
	p := &c.partial
	switch {
	case h.length == 0:
		return nil, protocolErrorf("an empty fragment")
	case p.buf == nil && h.arg == lastFragment:
		return nil, protocolErrorf("the last fragment of a message that did not begin")
	case p.buf != nil && (p.typ != h.typ || p.call != h.call):
		return nil, protocolErrorf("a fragment of type %d for call %d among those of another message", h.typ, h.call)
	case len(p.buf)+int(h.length) > MaxMessage:
		return nil, protocolErrorf("a message of more than %d bytes", MaxMessage)
	}
	start := len(p.buf)
	p.typ, p.call = h.typ, h.call
	p.buf = append(p.buf, make([]byte, h.length)...)
	if _, err := io.ReadFull(c.br, p.buf[start:]); err != nil {
		return nil, noEOF(err)
	}
	if h.arg == fragment {
		return nil, nil
	}
	payload := p.buf
	*p = partial{}
	return payload, nil
}

// gotCall starts to serve a call of the other end.
func (c *Conn) gotCall(id uint32, payload []byte) error {
	if c.handler == nil {
		return protocolErrorf("the agent opened a call")
	}
	if len(payload) == 0 {
		return protocolErrorf("a call without a method")
	}
	c.mu.Lock()
	if c.err != nil {
		c.mu.Unlock()
		return c.err
	}
	if id <= c.lastCall {
		c.mu.Unlock()
		return protocolErrorf("call number %d after %d", id, c.lastCall)
	}
	c.lastCall = id
	if len(c.calls) >= maxCalls {
		c.mu.Unlock()
		busy := &Error{Code: CodeBusy, Msg: "too many calls are in flight on this stream to the agent"}
		return c.w.urgent(header{typ: frameError, call: id}, Marshal(busy))
	}
	call := newCall(c, id, Method(payload[0]))
	call.request = payload[1:]
	c.calls[id] = call
	c.mu.Unlock()
	c.spawn(func() { c.serve(call) })
	return nil
}

// noEOF turns the end of the stream inside a frame into io.ErrUnexpectedEOF.
func noEOF(err error) error {
	if err == io.EOF {
		return io.ErrUnexpectedEOF
	}
	return err
}
