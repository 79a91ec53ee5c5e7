package httpgate

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"time"
)

type nameKey struct{}

// gated serves what next does behind a gate.
func gated(t *testing.T, o Options, next http.HandlerFunc) *httptest.Server {
	t.Helper()
	o.Refuse = func(w http.ResponseWriter, status int, message string) { http.Error(w, message, status) }
	if o.BodyTimeout == 0 {
		o.BodyTimeout = time.Minute
	}
	o.WriteTimeout = time.Minute
	g, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	s := httptest.NewServer(g.Wrap(next))
	t.Cleanup(s.Close)
	return s
}

// TestIdentify: a server that knows tokens itself is told who calls, and what is wrong with it is not told to others.
func TestIdentify(t *testing.T) {
	s := gated(t, Options{
		MaxBody: 10,
		Identify: func(ctx context.Context, token string) (context.Context, error) {
			switch token {
			case "known":
				return context.WithValue(ctx, nameKey{}, "somebody"), nil
			case "reads":
				return nil, fmt.Errorf("%w: it only reads", ErrForbidden)
			case "broken":
				return nil, errors.New("secret of the database")
			}
			return nil, ErrUnknown
		},
		Open: func(r *http.Request) bool { return r.URL.Path == "/open" },
	}, func(w http.ResponseWriter, r *http.Request) {
		name, _ := r.Context().Value(nameKey{}).(string)
		_, _ = io.WriteString(w, "hello "+name) // the client is the test
	})
	for _, c := range []struct {
		path   string
		header http.Header
		status int
		body   string
	}{
		{"/", http.Header{"Authorization": {"Bearer known"}}, 200, "hello somebody"},
		{"/", http.Header{"Authorization": {"bearer  known "}}, 200, "hello somebody"},
		{"/", http.Header{"X-Api-Key": {"known"}}, 200, "hello somebody"},
		{"/", http.Header{"X-Api-Key": {"known"}, "Authorization": {"Bearer known"}}, 401, ""},
		{"/", http.Header{"X-Api-Key": {"known", "known"}}, 401, ""},
		{"/", http.Header{"Authorization": {"known"}}, 401, ""},
		{"/", http.Header{"Authorization": {"Bearer other"}}, 401, ""},
		{"/", http.Header{"Authorization": {"Bearer broken"}}, 503, ""},
		{"/", http.Header{"Authorization": {"Bearer reads"}}, 403, "the token does not allow this: it only reads\n"},
		{"/", nil, 401, ""},
		{"/open", nil, 200, "hello "},
		{"/open", http.Header{"Authorization": {"Bearer broken"}}, 200, "hello "},
	} {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.URL+c.path, nil)
		if err != nil {
			t.Fatal(err)
		}
		r.Header = c.header
		res, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(res.Body)
		res.Body.Close()
		if err != nil || res.StatusCode != c.status || c.body != "" && string(body) != c.body || strings.Contains(string(body), "secret") {
			t.Errorf("%s %v: %d %s, %v: want %d %s", c.path, c.header, res.StatusCode, body, err, c.status, c.body)
		}
	}
}

// TestStream: a body that is left to the handler may be long, and each piece of it has its time.
func TestStream(t *testing.T) {
	read := make(chan error, 1)
	s := gated(t, Options{MaxBody: 10, BodyTimeout: 100 * time.Millisecond, Stream: func(*http.Request) bool { return true }}, func(_ http.ResponseWriter, r *http.Request) {
		_, err := io.Copy(io.Discard, r.Body)
		read <- err
	})
	res, err := http.Post(s.URL, "text/plain", strings.NewReader(strings.Repeat("x", 1<<20))) //nolint:noctx // it ends with the server
	if err != nil {
		t.Fatal(err)
	}
	res.Body.Close()
	if err := <-read; err != nil {
		t.Errorf("a long body: %v, want none", err)
	}
	conn, err := net.Dial("tcp", s.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if _, err := io.WriteString(conn, "POST / HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 100\r\n\r\nbegun"); err != nil {
		t.Fatal(err)
	}
	if err := <-read; !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("a body that stops coming: %v, want that its time is over", err)
	}
}

// TestStreamRefused: a client that sends all of its body before it reads gets the answer of a handler that has not read it, and one that waits to be told to
// send is told nothing but the answer.
func TestStreamRefused(t *testing.T) {
	const large = 32 << 20 // more than the buffers of a connection hold
	for _, c := range []struct {
		name, header string
		read         int64 // how much of it the handler reads
		send         int
	}{
		{"unread", "", 0, large},
		{"begun", "", 100, large},
		{"all but the last", "", large - 1, large},
		{"waits", "Expect: 100-continue\r\n", 0, 0},
		{"waits no more", "Expect: 100-continue\r\n", 0, large},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := gated(t, Options{BodyTimeout: time.Hour, Stream: func(*http.Request) bool { return true }}, func(w http.ResponseWriter, r *http.Request) {
				if _, err := io.CopyN(io.Discard, r.Body, c.read); err != nil {
					t.Error(err)
				}
				http.Error(w, "not here", http.StatusForbidden)
			})
			conn, err := net.Dial("tcp", s.Listener.Addr().String())
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close()
			if _, err := fmt.Fprintf(conn, "PUT / HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: %d\r\n%s\r\n", large, c.header); err != nil {
				t.Fatal(err)
			}
			if _, err := conn.Write(make([]byte, c.send)); err != nil {
				t.Errorf("got %v, want all of the body taken", err)
			}
			res, err := http.ReadResponse(bufio.NewReader(conn), nil)
			if err != nil {
				t.Fatal(err)
			}
			body, err := io.ReadAll(res.Body)
			if res.StatusCode != http.StatusForbidden || string(body) != "not here\n" || err != nil {
				t.Errorf("got %d %q, %v, want 403 and the handler's words", res.StatusCode, body, err)
			}
		})
	}
}

// TestStreamEnds: once a body that is left to the handler has ended, the answer has all the time that it takes.
func TestStreamEnds(t *testing.T) {
	const bodyTime = 50 * time.Millisecond
	cut := make(chan bool, 1)
	s := gated(t, Options{MaxBody: 10, BodyTimeout: bodyTime, Stream: func(*http.Request) bool { return true }}, func(_ http.ResponseWriter, r *http.Request) {
		if _, err := io.Copy(io.Discard, r.Body); err != nil {
			t.Error(err)
		}
		select {
		case <-r.Context().Done():
			cut <- true
		case <-time.After(4 * bodyTime): // a deadline that were still set would be over
			cut <- false
		}
	})
	for _, body := range []string{"", "body"} {
		res, err := http.Post(s.URL, "text/plain", strings.NewReader(body)) //nolint:noctx // it ends with the server
		if err != nil {
			t.Fatal(err)
		}
		res.Body.Close()
		if <-cut {
			t.Errorf("with the body %q: the request ended while it was answered", body)
		}
	}
}

// TestAbuse87SlowClients: clients that send a body slowly lose their connection, and others do not notice them.
func TestAbuse87SlowClients(t *testing.T) {
	const token = "Authorization: Bearer known\r\n"
	s := gated(t, Options{MaxBody: 1000, BodyTimeout: 100 * time.Millisecond, Identify: func(ctx context.Context, token string) (context.Context, error) {
		if token != "known" {
			return nil, ErrUnknown
		}
		return ctx, nil
	}}, func(http.ResponseWriter, *http.Request) {})
	for name, c := range map[string]struct{ sent, status string }{
		"half a body":       {token + "Content-Length: 1000\r\n\r\n{", "408"},
		"a body in chunks":  {token + "Transfer-Encoding: chunked\r\n\r\n1\r\n{\r\n", "408"},
		"a chunk's length":  {token + "Transfer-Encoding: chunked\r\n\r\n1", "408"},
		"half, and no pass": {"Content-Length: 1000\r\n\r\n{", "401"},
	} {
		t.Run(name, func(t *testing.T) {
			conn, err := net.Dial("tcp", s.Listener.Addr().String())
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close()
			if _, err := io.WriteString(conn, "POST / HTTP/1.1\r\nHost: 127.0.0.1\r\n"+c.sent); err != nil {
				t.Fatal(err)
			}
			// The server ends it: this read has no deadline of its own.
			got, err := io.ReadAll(conn)
			if err != nil && !strings.Contains(err.Error(), "reset") {
				t.Fatal(err)
			}
			if line, _, _ := strings.Cut(string(got), "\r\n"); !strings.Contains(line, c.status) {
				t.Errorf("answered %q, want status %q", line, c.status)
			}
		})
	}
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, s.URL, strings.NewReader("{}"))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer known")
	res, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	res.Body.Close()
	if res.StatusCode != http.StatusOK {
		t.Errorf("meanwhile: %d, want %d", res.StatusCode, http.StatusOK)
	}
}
