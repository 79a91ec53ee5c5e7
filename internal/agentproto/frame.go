package agentproto

import "encoding/binary"

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
