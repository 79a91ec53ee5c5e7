package agentproto

import (
	"bufio"
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"time"
)

// magic starts every stream. Its bytes occur in no text protocol, so that a
// stream of another kind can be distinguished from a damaged one.
const magic = "\xf0LSBX\x00"

// preambleSize is the length of the magic and the version.
const preambleSize = len(magic) + 2

// maxHello bounds the payload of a hello frame.
const maxHello = 4 << 10

// readBuffer is the size of the buffer between the stream and the frame reader.
const readBuffer = 16 << 10

// Client does the handshake as the caller and returns the connection. It owns
// rwc, whose Close must end a pending Read and Write.
func Client(ctx context.Context, rwc io.ReadWriteCloser, hello Hello) (*Conn, error) {
	stop := context.AfterFunc(ctx, func() { rwc.Close() })
	// The hello is written beside reading, so that it does not matter whether the
	// stream has a buffer.
	wrote := make(chan error, 1)
	go func() { wrote <- sendHello(rwc, hello) }()
	br := bufio.NewReaderSize(rwc, readBuffer)
	peer, err := receiveHello(br)
	if err != nil {
		rwc.Close()
	}
	if werr := <-wrote; err == nil && werr != nil {
		err = &StreamError{Err: werr}
	}
	if !stop() {
		err = fmt.Errorf("handshake with the agent: %w", context.Cause(ctx))
	}
	if err != nil {
		rwc.Close()
		return nil, err
	}
	c := newConn(rwc, br, peer, nil)
	c.spawn(c.readLoop)
	return c, nil
}

// Server does the handshake as the agent, then serves calls until the stream
// ends. The client's hello may take as long as patience, or, where that is 0, any time:
// a stream that its owner has had from the start may rest until it is needed. It returns when every handler has returned: nil if the client closed the
// stream between two frames. It owns rwc, whose Close must end a pending Read and
// Write.
func Server(rwc io.ReadWriteCloser, hello Hello, patience time.Duration, h Handler) error {
	defer rwc.Close()
	greeted := func() bool { return true }
	if patience > 0 {
		greeted = time.AfterFunc(patience, func() { rwc.Close() }).Stop
	}
	defer greeted()
	if err := sendHello(rwc, hello); err != nil {
		return &StreamError{Err: err}
	}
	br := bufio.NewReaderSize(rwc, readBuffer)
	peer, err := receiveHello(br)
	if err != nil {
		return err
	}
	greeted()
	c := newConn(rwc, br, peer, h)
	c.readLoop()
	<-c.done // a handler may be ending it
	c.goroutines.Wait()
	if lost, ok := c.Err().(*StreamError); ok && lost.Err == io.EOF {
		return nil
	}
	return c.Err()
}

func sendHello(w io.Writer, hello Hello) error {
	hello.Version = Version
	payload := Marshal(&hello)
	b := append([]byte(nil), magic...)
	b = binary.LittleEndian.AppendUint16(b, Version)
	b = header{length: uint32(len(payload)), typ: frameHello}.append(b)
	_, err := w.Write(append(b, payload...))
	return err
}

func receiveHello(br *bufio.Reader) (hello Hello, err error) {
	theirs, err := readPreamble(br)
	if err != nil {
		return hello, err
	}
	if theirs != Version {
		return hello, &VersionError{Ours: Version, Theirs: theirs}
	}
	var raw [headerSize]byte
	if _, err := io.ReadFull(br, raw[:]); err != nil {
		return hello, handshakeEnd(err)
	}
	h := parseHeader(raw[:])
	if err := h.check(); err != nil {
		return hello, err
	}
	if h.typ != frameHello || h.length > maxHello {
		return hello, protocolErrorf("the first frame has type %d and %d bytes, which is no hello", h.typ, h.length)
	}
	payload := make([]byte, h.length)
	if _, err := io.ReadFull(br, payload); err != nil {
		return hello, handshakeEnd(err)
	}
	if err := Unmarshal(payload, &hello); err != nil {
		return hello, err
	}
	hello.Version = theirs
	return hello, nil
}

// readPreamble returns the other end's version. It looks at each byte as it
// comes, since a stream that is something else may never send as many as a preamble.
func readPreamble(br *bufio.Reader) (uint32, error) {
	for i := range len(magic) {
		seen, err := br.Peek(i + 1)
		if err != nil {
			if len(seen) > 0 {
				return 0, protocolErrorf("the other end is no agent: it sent %q and closed the stream", seen)
			}
			return 0, handshakeEnd(err)
		}
		if seen[i] != magic[i] {
			excerpt, _ := br.Peek(min(br.Buffered(), 80))
			return 0, protocolErrorf("the other end is no agent: its first bytes are %q", excerpt)
		}
	}
	var raw [preambleSize]byte
	if _, err := io.ReadFull(br, raw[:]); err != nil {
		return 0, handshakeEnd(err)
	}
	return uint32(binary.LittleEndian.Uint16(raw[len(magic):])), nil
}

// handshakeEnd describes a stream that ended during the handshake.
func handshakeEnd(err error) error {
	if err == io.EOF || err == io.ErrUnexpectedEOF {
		return &StreamError{Err: fmt.Errorf("the other end closed it during the handshake: %w", io.ErrUnexpectedEOF)}
	}
	return &StreamError{Err: err}
}
