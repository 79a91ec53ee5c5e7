package agentproto

import (
	"context"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"strings"
	"testing"
	"time"
)

func TestHandshakeWithSomethingElse(t *testing.T) {
	other := []byte(magic)
	other = binary.LittleEndian.AppendUint16(other, Version+1)
	older := binary.LittleEndian.AppendUint16([]byte(magic), Version-1)
	for _, c := range []struct{ name, sent, want string }{
		{"HTTP", "HTTP/1.1 400 Bad Request\r\n\r\n", `"HTTP/1.1 400 Bad`},
		{"shell prompt", "$ ", `"$ "`},
		{"control sequences", "\x1b]0;evil\x07", `\x1b]0;evil\a`},
		{"long banner", strings.Repeat("welcome ", 1000), `"welcome `},
		{"start of the magic", magic[:2], `"\xf0L" and closed`},
		{"nothing", "", "closed it during the handshake"},
		{"magic alone", magic, "closed it during the handshake"},
		{"newer", string(other), "this end is older"},
		{"older", string(older), "the other end is older"},
		{"no hello", string(greeting(Hello{})[:preambleSize]) + string(rawFrame(framePing, 0, 0, "12345678")), "no hello"},
		{"large hello", string(greeting(Hello{})[:preambleSize]) + string(rawFrame(frameHello, 0, 0, strings.Repeat("x", maxHello+1))), "no hello"},
		{"damaged hello", string(greeting(Hello{})[:preambleSize]) + string(rawFrame(frameHello, 0, 0, "\xff")), "Hello"},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := Client(t.Context(), newScripted([]byte(c.sent), 0), Hello{})
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("client: %v, want an error containing %q", err, c.want)
			}
			err = Server(newScripted([]byte(c.sent), 0), Hello{}, 0, handlerFunc(echoHandler))
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("server: %v, want an error containing %q", err, c.want)
			}
			if len(err.Error()) > 500 {
				t.Errorf("an error of %d bytes, want at most 500", len(err.Error()))
			}
			t.Log(err)
		})
	}
	var version *VersionError
	_, err := Client(t.Context(), newScripted(other, 0), Hello{})
	if !errors.As(err, &version) || version.Theirs != Version+1 || version.Ours != Version {
		t.Error(err)
	}
}

func TestHandshakeEndsWithContext(t *testing.T) {
	for _, greet := range []bool{false, true} {
		a, b := net.Pipe()
		if greet {
			go b.Write(greeting(Hello{})) // but never read
		}
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
		conn, err := Client(ctx, a, Hello{})
		cancel()
		if !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("greet %v: %v, %v, want context.DeadlineExceeded", greet, conn, err)
		}
		if _, err := a.Write([]byte("x")); !errors.Is(err, io.ErrClosedPipe) {
			t.Errorf("the stream is left open: %v, want io.ErrClosedPipe", err)
		}
		b.Close()
	}
}

func TestPeersHello(t *testing.T) {
	a, b := net.Pipe()
	want := Hello{Capabilities: []string{"pty"}, Arch: "arm64", AgentUID: 1, CodeUID: 2, CodeGID: 3, Instance: 1 << 60}
	go Server(b, want, 0, handlerFunc(echoHandler))
	conn, err := Client(t.Context(), a, Hello{})
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	got := conn.Peer()
	if got.Version != Version || got.Instance != want.Instance || got.Capabilities[0] != "pty" || got.CodeGID != 3 {
		t.Errorf("%+v, want Version = Version, Instance = %v, got.Capabilities[0] = \"pty\", CodeGID = 3", got, want.Instance)
	}
}
