package agentproto

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

type handlerFunc func(*Call)

func (f handlerFunc) ServeCall(c *Call) { f(c) }

// pair connects a client to a server with that handler.
func pair(t testing.TB, h func(*Call)) *Conn {
	t.Helper()
	a, b := net.Pipe()
	served := make(chan error, 1)
	go func() { served <- Server(b, Hello{Arch: "test"}, 0, handlerFunc(h)) }()
	conn, err := Client(context.Background(), a, Hello{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		conn.Close()
		if err := <-served; err != nil && !errors.Is(err, ErrStreamLost) {
			t.Errorf("server: %v, want no error or ErrStreamLost", err)
		}
	})
	return conn
}

func TestCallExchange(t *testing.T) {
	conn := pair(t, func(c *Call) {
		var req StartRequest
		if err := c.Request(&req); err != nil {
			c.Fail(err)
			return
		}
		c.Send(&Started{ID: 7, PID: 42})
		input := new(bytes.Buffer)
		buf := make([]byte, 1000)
		for {
			n, err := c.Read(ChanIn, buf)
			input.Write(buf[:n])
			if err != nil {
				break
			}
		}
		c.Write(ChanOut, input.Bytes())
		c.CloseWrite(ChanOut)
		c.Write(ChanErr, []byte(req.Argv[0]))
		c.End(&Exit{Known: true, Code: 3})
		<-c.Done()
		if !c.Collected() {
			t.Error("not collected: c.Collected() = false, want true")
		}
	})
	if conn.Peer().Arch != "test" || conn.Peer().Version != Version {
		t.Errorf("peer: %+v, want Arch = \"test\", Version = Version", conn.Peer())
	}
	call, err := conn.Open(MethodStart, &StartRequest{Argv: []string{"prog"}, Stdin: true})
	if err != nil {
		t.Fatal(err)
	}
	var started Started
	if final, err := call.Recv(t.Context(), &started); err != nil || final || started.PID != 42 {
		t.Fatalf("started = %v, final = %v, err = %v, want no error, final = false, PID = 42", started, final, err)
	}
	in := bytes.Repeat([]byte("0123456789"), 40_000)
	go func() {
		call.Write(ChanIn, in)
		call.CloseWrite(ChanIn)
	}()
	out, err := io.ReadAll(reader{call, ChanOut})
	if err != nil || !bytes.Equal(out, in) {
		t.Fatalf("len(out) = %v, err = %v, want no error, bytes.Equal(out, in) = true", len(out), err)
	}
	var exit Exit
	if final, err := call.Recv(t.Context(), &exit); err != nil || !final || exit.Code != 3 {
		t.Fatalf("exit = %v, final = %v, err = %v, want no error, final = true, Code = 3", exit, final, err)
	}
	if _, err := call.Recv(t.Context(), &exit); err != io.EOF {
		t.Fatal(err)
	}
	if text, err := io.ReadAll(reader{call, ChanErr}); string(text) != "prog" || err != nil {
		t.Fatalf("text = %v, err = %v, want text = \"prog\", no error", text, err)
	}
	if err := conn.Ping(t.Context()); err != nil {
		t.Fatal(err)
	}
}

type reader struct {
	call *Call
	ch   Channel
}

func (r reader) Read(p []byte) (int, error) { return r.call.Read(r.ch, p) }
