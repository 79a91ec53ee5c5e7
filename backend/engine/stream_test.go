package engine

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/containerd/errdefs"
	"github.com/moby/moby/client"
)

func frame(kind byte, content string) string {
	var h [frameHeader]byte
	h[0] = kind
	binary.BigEndian.PutUint32(h[4:], uint32(len(content)))
	return string(h[:]) + content
}

func TestStreamRead(t *testing.T) {
	long := strings.Repeat("w", maxStderr)
	for _, c := range []struct {
		name, in, out, said string
		fails               error
	}{
		{"nothing", "", "", "", nil},
		{"stdout", frame(frameStdout, "ab") + frame(frameStdout, "c"), "abc", "", nil},
		{"empty frames", frame(frameStdout, "") + frame(frameStderr, "") + frame(frameStdout, "a"), "a", "", nil},
		{"stderr between", frame(frameStdout, "a") + frame(frameStderr, "oh") + frame(frameStdout, "b"), "ab", "oh", io.ErrUnexpectedEOF},
		{"last words", frame(frameSystem, "gone"), "", "gone", io.ErrUnexpectedEOF},
		{"too many words", frame(frameStderr, long+"more") + frame(frameStdout, "a"), "a", long, io.ErrUnexpectedEOF},
		{"cut header", frame(frameStdout, "a")[:5], "", "", io.ErrUnexpectedEOF},
		{"cut content", frame(frameStdout, "abc")[:frameHeader+1], "a", "", io.ErrUnexpectedEOF},
		{"cut words", frame(frameStderr, "abc")[:frameHeader+1], "", "a", io.ErrUnexpectedEOF},
		{"unknown kind", frame(9, "a"), "", "", errOutOfStep},
		{"text", "HTTP/1.1 200 OK", "", "", errOutOfStep},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := &stream{in: iotest.OneByteReader(strings.NewReader(c.in))}
			out, err := io.ReadAll(s)
			if string(out) != c.out || s.Said() != c.said || !errors.Is(err, c.fails) {
				t.Errorf("%q, said %.20q, %v; want %q, %.20q, %v", out, s.Said(), err, c.out, c.said, c.fails)
			}
		})
	}
}

func FuzzStreamRead(f *testing.F) {
	f.Add([]byte(frame(frameStdout, "ab") + frame(frameStderr, "oh")))
	f.Add([]byte(frame(frameStderr, strings.Repeat("x", 100))[:20]))
	f.Add([]byte("\x01\x00\x00\x00\xff\xff\xff\xff"))
	f.Fuzz(func(t *testing.T, in []byte) {
		s := &stream{in: bytes.NewReader(in)}
		out, _ := io.ReadAll(s)
		if len(out)+len(s.Said()) > len(in) {
			t.Errorf("%d bytes of output and %d of words out of %d", len(out), len(s.Said()), len(in))
		}
	})
}

// engineOf is a client of an engine that answers every request with handle.
func engineOf(t *testing.T, handle http.HandlerFunc) *client.Client {
	t.Helper()
	socket := filepath.Join(t.TempDir(), "e.sock")
	l, err := net.Listen("unix", socket)
	if err != nil {
		t.Skipf("no unix sockets here: %v", err)
	}
	s := httptest.NewUnstartedServer(handle)
	s.Listener.Close()
	s.Listener = l
	s.Start()
	t.Cleanup(s.Close)
	c, err := client.New(client.WithHost("unix://"+socket), client.WithAPIVersion("1.41"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c
}

func TestUpgradeTellsTheEnginesReason(t *testing.T) {
	for _, c := range []struct {
		status int
		body   string
		is     func(error) bool
		want   string
	}{
		{404, `{"message":"no such container"}`, errdefs.IsNotFound, "no such container"},
		{409, `{"cause":"x","message":"crun: no such program"}`, errdefs.IsConflict, "crun: no such program"},
		{403, `{"message":"a plugin says no"}`, errdefs.IsPermissionDenied, "a plugin says no"},
		{500, `<html>`, errdefs.IsInternal, "500 Internal Server Error <html>"},
		{200, ``, errdefs.IsInternal, "200 OK"},
		{500, strings.Repeat("x", 2*maxRefusal), errdefs.IsInternal, "xxx"},
	} {
		e := engineOf(t, func(w http.ResponseWriter, r *http.Request) {
			w.WriteHeader(c.status)
			_, _ = io.WriteString(w, c.body)
		})
		_, err := attach(context.Background(), e, "abc")
		if err == nil || !c.is(err) || !strings.Contains(err.Error(), c.want) || len(err.Error()) > maxRefusal+100 {
			t.Errorf("%d %.20q: got %v, want an error, c.is(err) = true, an error containing %q, len(err.Error()) <= %v", c.status, c.body, err, c.want, maxRefusal+100)
		}
	}
}

func TestUpgradeGivesTheStream(t *testing.T) {
	e := engineOf(t, func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		if r.URL.Path != "/v1.41/exec/abc/start" || r.Header.Get("Upgrade") != "tcp" || string(body) != `{"Detach":false,"Tty":false}` {
			t.Errorf("asked for %s with %q, want Path = \"/v1.41/exec/abc/start\", r.Header.Get(\"Upgrade\") = \"tcp\", body = \"{\\\"Detach\\\":false,\\\"Tty\\\":false}\"", r.URL, body)
		}
		conn, rw, err := w.(http.Hijacker).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		defer conn.Close()
		// The first bytes come with the answer's.
		_, _ = rw.WriteString("HTTP/1.1 101 UPGRADED\r\nConnection: Upgrade\r\nUpgrade: tcp\r\n\r\nfirst ")
		_ = rw.Flush()
		said, _ := io.ReadAll(rw) // up to the half close
		_, _ = conn.Write(said)
	})
	h, err := startExec(context.Background(), e, "abc")
	if err != nil {
		t.Fatal(err)
	}
	defer h.Close()
	if _, err := io.WriteString(h.Conn, "second"); err != nil {
		t.Fatal(err)
	}
	if err := h.CloseWrite(); err != nil {
		t.Fatal(err)
	}
	if got, err := io.ReadAll(h.Reader); string(got) != "first second" || err != nil {
		t.Errorf("got %q, %v, want got = \"first second\", no error", got, err)
	}
}

func TestAttachBeginsWithWhatTheCallerSends(t *testing.T) {
	e := engineOf(t, func(w http.ResponseWriter, r *http.Request) {
		// As Podman does: whatever follows the head is the container's standard input.
		conn, rw, err := w.(http.Hijacker).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		defer conn.Close()
		_, _ = conn.Write([]byte("HTTP/1.1 101 UPGRADED\r\nConnection: Upgrade\r\nUpgrade: tcp\r\n\r\n"))
		said, _ := io.ReadAll(rw)
		_, _ = conn.Write(said)
	})
	h, err := attach(context.Background(), e, "abc")
	if err != nil {
		t.Fatal(err)
	}
	defer h.Close()
	if _, err := io.WriteString(h.Conn, "mine"); err != nil {
		t.Fatal(err)
	}
	if err := h.CloseWrite(); err != nil {
		t.Fatal(err)
	}
	if got, err := io.ReadAll(h.Reader); string(got) != "mine" || err != nil {
		t.Errorf("got %q, %v, want got = \"mine\", no error", got, err)
	}
}

func TestUpgradeEndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	e := engineOf(t, func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body) // only then the server sees a client go
		cancel()
		<-r.Context().Done() // no answer before the client has gone
	})
	if _, err := attach(ctx, e, "abc"); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want context.Canceled", err)
	}
}

func TestNameTaken(t *testing.T) {
	for _, c := range []struct {
		err  error
		want bool
	}{
		{errdefs.ErrConflict.WithMessage("in use"), true},
		{errdefs.ErrInternal.WithMessage("the container name \"x\" is already in use by 1: that name is already in use"), true},
		{errdefs.ErrInternal.WithMessage("out of space"), false},
		{errdefs.ErrNotFound.WithMessage("image x: that name is already in use"), false},
		{nil, false},
	} {
		if got := nameTaken(c.err); got != c.want {
			t.Errorf("%v: %v, want %v", c.err, got, c.want)
		}
	}
}
