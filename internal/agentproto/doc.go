// Package agentproto is the protocol between a host process and the guest agent:
// several calls at once over one byte stream, each with messages and with
// channels of bulk bytes that are held back when their reader is slow.
//
// # Wire format
//
// Each end first sends a preamble of 8 bytes (6 of magic, 2 of version, little
// endian) and a hello frame. After that the stream is a sequence of frames:
//
//	length u32 | type u8 | arg u8 | call u32 | payload of length bytes
//
// with little-endian numbers and at most [MaxFrame] bytes of payload. arg is the
// channel of data, eof and ack frames; for the types that carry a message it is 0
// for a whole one, 1 for a fragment and 2 for the last fragment. At most one
// message at a time is in fragments, so a peer can make the other end hold no more than one
// unfinished [MaxMessage].
//
// Call numbers are chosen by the client and only grow, so a late frame of a call
// that has ended is not taken for a violation of the protocol.
//
// Nothing that the other end does makes one call wait for another: the
// goroutine that reads the stream never writes to it and never waits for a
// consumer, since a peer may have no more than a window of unacknowledged bytes
// on a channel and of messages on a call.
package agentproto
