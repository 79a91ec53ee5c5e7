package agentproto

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"strings"
	"sync/atomic"
	"testing"
)

func u64(v uint64) string { return string(binary.LittleEndian.AppendUint64(nil, v)) }

// Each is sent to a client with one open call, of number 1.
func TestClientRefuses(t *testing.T) {
	piece := strings.Repeat("x", MaxFrame)
	many := func(frame []byte, n int) []byte { return bytes.Repeat(frame, n) }
	for _, c := range []struct {
		name, want string
		sent       []byte
	}{
		{"frame too large", "a frame of 65537 bytes", header{length: MaxFrame + 1, typ: frameData, call: 1}.append(nil)},
		{"unknown type", "unknown type 99", rawFrame(99, 0, 1, "")},
		{"text", "a frame of 1735289178 bytes", []byte("Zing went the strings")},
		{"second hello", "second hello", rawFrame(frameHello, 0, 0, "")},
		{"unknown call", "nobody opened", rawFrame(frameData, 1, 2, "x")},
		{"call from the agent", "opened a call", rawFrame(frameCall, 0, 2, "\x01")},
		{"cancel from the agent", "only its client may", rawFrame(frameCancel, 0, 1, "")},
		{"ping for a call", "for call 1", rawFrame(framePing, 0, 1, u64(0))},
		{"data for no call", "for call 0", rawFrame(frameData, 1, 0, "x")},
		{"short ping", "with 3 bytes", rawFrame(framePing, 0, 0, "abc")},
		{"pong without ping", "was not sent", rawFrame(framePong, 0, 0, u64(5))},
		{"empty data", "without data", rawFrame(frameData, 1, 1, "")},
		{"unknown channel", "argument 4", rawFrame(frameData, 4, 1, "x")},
		{"wrong channel", "flows the other way", rawFrame(frameData, 0, 1, "x")},
		{"wrong end of channel", "flows the other way", rawFrame(frameEOF, 0, 1, "")},
		{"wrong acknowledgement", "flows the other way", rawFrame(frameAck, 1, 1, u64(0))},
		{"data after end", "after its end", append(rawFrame(frameEOF, 1, 1, ""), rawFrame(frameData, 1, 1, "x")...)},
		{"two ends", "ends twice", many(rawFrame(frameEOF, 1, 1, ""), 2)},
		{"acknowledges what was not sent", "of 0 sent", rawFrame(frameAck, 0, 1, u64(1))},
		{"acknowledges messages not sent", "of 0", rawFrame(frameAck, chanMessages, 1, u64(1))},
		{"window overrun", "its window of 524288", many(rawFrame(frameData, 1, 1, piece), Window/MaxFrame+1)},
		{"message flood", "messages unacknowledged", many(rawFrame(frameMessage, 0, 1, ""), Window)},
		{"message too large", "more than 16777216", many(rawFrame(frameMessage, fragment, 1, piece), MaxMessage/MaxFrame+1)},
		{"empty fragment", "empty fragment", rawFrame(frameMessage, fragment, 1, "")},
		{"stray last fragment", "did not begin", rawFrame(frameMessage, lastFragment, 1, "x")},
		{"mixed fragments", "another message", append(rawFrame(frameMessage, fragment, 1, "x"), rawFrame(frameFinal, fragment, 1, "x")...)},
		{"damaged error", "Error", rawFrame(frameError, 0, 1, "\xff")},
	} {
		t.Run(c.name, func(t *testing.T) {
			conn, peer := rawClient(t)
			call, err := conn.Open(MethodStart, &Empty{})
			if err != nil {
				t.Fatal(err)
			}
			go func() {
				peer.Write(c.sent)
				peer.Close()
			}()
			within(t, "end of the stream", conn.Done())
			err = conn.Err()
			if !errors.Is(err, ErrStreamLost) || !strings.Contains(err.Error(), c.want) {
				t.Error(err)
			}
			within(t, "end of the call", call.Done())
			if _, err := conn.Open(MethodStart, &Empty{}); !errors.Is(err, ErrStreamLost) {
				t.Errorf("Open afterwards: %v, want ErrStreamLost", err)
			}
		})
	}
}

func TestClientRefusesDamagedReply(t *testing.T) {
	conn, peer := rawClient(t)
	call, err := conn.Open(MethodStart, &Empty{})
	if err != nil {
		t.Fatal(err)
	}
	go peer.Write(rawFrame(frameMessage, 0, 1, "\xff"))
	_, err = call.Recv(t.Context(), &Started{})
	if broken := (*ProtocolError)(nil); !errors.As(err, &broken) || !errors.Is(err, ErrStreamLost) {
		t.Error(err)
	}
	within(t, "end of the stream", conn.Done())
}

// Frames of a call that has ended are late, not wrong.
func TestClientIgnoresLateFrames(t *testing.T) {
	conn, peer := rawClient(t)
	call, err := conn.Open(MethodWatch, &Empty{})
	if err != nil {
		t.Fatal(err)
	}
	call.Cancel()
	next, err := conn.Open(MethodStat, &Empty{})
	if err != nil {
		t.Fatal(err)
	}
	for _, frame := range [][]byte{
		rawFrame(frameMessage, 0, 1, "x"), rawFrame(frameData, 1, 1, "x"), rawFrame(frameEOF, 1, 1, ""),
		rawFrame(frameAck, 0, 1, u64(9)), rawFrame(frameFinal, 0, 1, ""), rawFrame(frameError, 0, 1, "\xff"),
		rawFrame(frameFinal, 0, 2, ""),
	} {
		if _, err := peer.Write(frame); err != nil {
			t.Fatal(err, conn.Err())
		}
	}
	if final, err := next.Recv(t.Context(), &Empty{}); !final || err != nil {
		t.Errorf("final = %v, err = %v, want final = true, no error", final, err)
	}
}

func TestServerRefuses(t *testing.T) {
	open := rawFrame(frameCall, 0, 1, "\x01")
	for _, c := range []struct {
		name, want string
		sent       []byte
	}{
		{"no method", "without a method", rawFrame(frameCall, 0, 1, "")},
		{"number twice", "call number 1 after 1", append(open, open...)},
		{"final from the client", "only the agent may", append(open, rawFrame(frameFinal, 0, 1, "")...)},
		{"error from the client", "only the agent may", append(open, rawFrame(frameError, 0, 1, "\x01\x00")...)},
		{"wrong channel", "flows the other way", append(open, rawFrame(frameData, 1, 1, "x")...)},
		{"window overrun", "its window", append(open, bytes.Repeat(rawFrame(frameData, 0, 1, strings.Repeat("x", MaxFrame)), 9)...)},
	} {
		t.Run(c.name, func(t *testing.T) {
			peer, served := rawServer(t, func(call *Call) { <-call.Done() })
			go peer.Write(c.sent)
			err := within(t, "end of the server", served)
			if broken := (*ProtocolError)(nil); !errors.As(err, &broken) || !strings.Contains(err.Error(), c.want) {
				t.Error(err)
			}
		})
	}
}

// A client that opens calls without end and reads nothing gets no memory.
func TestServerRefusesFloodOfCalls(t *testing.T) {
	a, b := net.Pipe()
	served := make(chan error, 1)
	go func() { served <- Server(b, Hello{}, 0, handlerFunc(func(c *Call) { <-c.Done() })) }()
	hello := make([]byte, len(greeting(Hello{})))
	go func() {
		a.Write(greeting(Hello{}))
		for id := uint32(1); ; id++ {
			if _, err := a.Write(rawFrame(frameCall, 0, id, "\x11")); err != nil {
				return
			}
		}
	}()
	if _, err := a.Read(hello); err != nil {
		t.Fatal(err)
	}
	err := within(t, "end of the server", served)
	if err == nil || !strings.Contains(err.Error(), "does not read them") {
		t.Error(err)
	}
	a.Close()
}

// However an exchange is cut, both ends notice and say so.
func TestStreamCutAnywhere(t *testing.T) {
	a, b := net.Pipe()
	served := make(chan error, 1)
	go func() { served <- Server(b, Hello{}, 0, handlerFunc(echoHandler)) }()
	rec := &recorder{Conn: a}
	conn, err := Client(t.Context(), rec, Hello{})
	if err != nil {
		t.Fatal(err)
	}
	if err := exchange(conn); err != nil {
		t.Fatal(err)
	}
	conn.Close()
	if err := within(t, "server", served); err != nil {
		t.Fatal(err)
	}
	toClient, toServer := rec.in.Bytes(), rec.out.Bytes()
	for cut := range toClient {
		conn, err := Client(t.Context(), newScripted(toClient[:cut], 1), Hello{})
		if err == nil {
			err = exchange(conn)
			if err == nil {
				<-conn.Done()
				err = conn.Err()
			}
			conn.Close()
		}
		wantCut(t, "client", cut, err)
	}
	for cut := range toServer {
		go func() {
			served <- Server(newScripted(toServer[:cut], 0), Hello{}, 0, handlerFunc(echoHandler))
		}()
		// The server cannot tell a client that leaves between two frames from one
		// that is cut off there.
		if err := within(t, "server", served); err != nil {
			wantCut(t, "server", cut, err)
		}
	}
}

// wantCut fails unless err tells that the stream ended, and of nothing else.
func wantCut(t *testing.T, end string, cut int, err error) {
	t.Helper()
	var broken *ProtocolError
	isBroken := errors.As(err, &broken)
	if inMagic := cut > 0 && cut < len(magic); inMagic && isBroken {
		return
	}
	if !errors.Is(err, ErrStreamLost) || isBroken {
		t.Errorf("%s, cut at %d: %v, want ErrStreamLost, isBroken = false", end, cut, err)
	}
}

// brokenWrites is a stream whose writes fail after the first, the hello.
type brokenWrites struct {
	*scripted
	wrote atomic.Bool
}

func (s *brokenWrites) Write(p []byte) (int, error) {
	if s.wrote.Swap(true) {
		s.scripted.Write(p)
		return 0, io.ErrClosedPipe
	}
	return s.scripted.Write(p)
}

// What the agent sent before it closed the stream is not lost to a failed write.
func TestFailedWriteLeavesWhatWasReceived(t *testing.T) {
	sent := greeting(Hello{})
	sent = append(sent, rawFrame(framePing, 0, 0, u64(1))...)
	sent = append(sent, rawFrame(frameData, 1, 1, "output")...)
	sent = append(sent, rawFrame(frameFinal, 0, 1, string(Marshal(&Exit{Known: true, Code: 9})))...)
	conn, err := Client(t.Context(), &brokenWrites{scripted: newScripted(sent, 2)}, Hello{})
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	call, err := conn.addCall(MethodStart) // as if its request had just got through
	if err != nil {
		t.Fatal(err)
	}
	if _, err := call.Write(ChanIn, []byte("x")); !errors.Is(err, ErrStreamLost) {
		t.Errorf("write: %v, want ErrStreamLost", err)
	}
	if err := call.CloseWrite(ChanIn); !errors.Is(err, ErrStreamLost) {
		t.Errorf("second write: %v, want ErrStreamLost", err)
	}
	conn.rwc.Write(nil) // let the rest come
	var exit Exit
	if final, err := call.Recv(t.Context(), &exit); err != nil || !final || exit.Code != 9 {
		t.Errorf("exit = %v, final = %v, err = %v, want no error, final = true, Code = 9", exit, final, err)
	}
	if b, err := io.ReadAll(reader{call, ChanOut}); string(b) != "output" || err != nil {
		t.Errorf("%q %v, want b = \"output\", no error", b, err)
	}
	within(t, "end of the stream", conn.Done())
}
