package agentproto

import (
	"context"
	"io"
	"testing"
	"time"
)

// seeds are frames that each end gets in an ordinary exchange, and some that it
// must refuse.
func seeds(f *testing.F) {
	join := func(frames ...[]byte) (b []byte) {
		for _, frame := range frames {
			b = append(b, frame...)
		}
		return b
	}
	start := string(Marshal(&StartRequest{Argv: []string{"a"}, PTY: &WinSize{Rows: 2, Cols: 3}}))
	for _, b := range [][]byte{
		{},
		join(
			rawFrame(frameCall, 0, 1, "\x01"+start), rawFrame(frameData, 0, 1, "input"), rawFrame(frameEOF, 0, 1, ""),
			rawFrame(frameAck, 1, 1, u64(5)), rawFrame(frameAck, chanMessages, 1, u64(64)), rawFrame(frameCollect, 0, 1, ""),
		),
		join(rawFrame(frameCall, fragment, 1, "\x11"), rawFrame(framePing, 0, 0, u64(1)), rawFrame(frameCall, lastFragment, 1, "x"), rawFrame(frameCancel, 0, 1, "")),
		join(
			rawFrame(frameMessage, 0, 1, string(Marshal(&Started{ID: 1, PID: 2}))), rawFrame(frameData, 1, 1, "out"),
			rawFrame(frameData, 2, 1, "err"), rawFrame(frameEOF, 1, 1, ""), rawFrame(frameFinal, 0, 1, string(Marshal(&Exit{Known: true}))),
			rawFrame(frameError, 0, 2, string(Marshal(&Error{Code: CodeNotFound, Msg: "no"}))), rawFrame(framePong, 0, 0, u64(0)),
		),
		join(rawFrame(frameData, 1, 2, "x"), rawFrame(frameAck, 0, 1, u64(1<<40))),
		join(
			rawFrame(frameCall, 0, 1, "\x1c"+string(Marshal(&LogsRequest{ID: 1, OutOffset: 2, ErrOffset: 3, Follow: true}))),
			rawFrame(frameAck, chanMessages, 1, u64(80)), rawFrame(frameCancel, 0, 1, ""),
		),
		join(
			rawFrame(frameMessage, 0, 1, string(Marshal(&Output{Offset: 2, Data: []byte("out")}))),
			rawFrame(frameMessage, 0, 1, string(Marshal(&Output{Err: true, Offset: 1 << 63, Data: []byte("err")}))),
			rawFrame(frameFinal, 0, 1, string(Marshal(&Output{}))),
		),
	} {
		f.Add(b)
	}
}

// finish fails the test when f does not return.
func finish(t *testing.T, f func()) {
	done := make(chan struct{})
	go func() { f(); close(done) }()
	select {
	case <-done:
	case <-time.After(30 * time.Second):
		panic("hangs")
	}
}

// FuzzServer gives a server any bytes after the client's greeting.
func FuzzServer(f *testing.F) {
	seeds(f)
	f.Fuzz(func(t *testing.T, b []byte) {
		stream := newScripted(append(greeting(Hello{}), b...), 0)
		finish(t, func() { Server(stream, Hello{}, 0, handlerFunc(echoHandler)) })
	})
}

// FuzzClient gives a client with two open calls any bytes after the agent's greeting.
func FuzzClient(f *testing.F) {
	seeds(f)
	f.Fuzz(func(t *testing.T, b []byte) {
		stream := newScripted(append(greeting(Hello{}), b...), 2)
		finish(t, func() {
			conn, err := Client(context.Background(), stream, Hello{})
			if err != nil {
				t.Error(err)
				return
			}
			var calls []*Call
			for _, m := range []Method{MethodStart, MethodWatch} {
				call, err := conn.Open(m, &Empty{})
				if err != nil {
					break // the input has ended the stream meanwhile
				}
				calls = append(calls, call)
			}
			for _, call := range calls {
				for {
					if _, err := call.Recv(context.Background(), &Started{}); err != nil {
						break
					}
				}
				for _, ch := range []Channel{ChanOut, ChanErr} {
					io.Copy(io.Discard, reader{call, ch})
				}
			}
			<-conn.Done()
			conn.Close()
		})
	})
}

// FuzzHandshake gives both ends any bytes from the start.
func FuzzHandshake(f *testing.F) {
	f.Add([]byte("HTTP/1.1 400 Bad Request\r\n\r\n"))
	f.Add(greeting(Hello{Capabilities: []string{"pty", "watch"}, Arch: "amd64"}))
	f.Add(append(greeting(Hello{}), rawFrame(frameCall, 0, 1, "\x01")...))
	f.Fuzz(func(t *testing.T, b []byte) {
		finish(t, func() {
			Server(newScripted(b, 0), Hello{}, 0, handlerFunc(echoHandler))
			conn, err := Client(context.Background(), newScripted(b, 0), Hello{})
			if err == nil {
				conn.Close()
			}
		})
	})
}
