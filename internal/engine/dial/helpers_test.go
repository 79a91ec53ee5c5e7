package dial

import (
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"

	"github.com/moby/moby/client"
	"go.uber.org/goleak"

	"github.com/llmsandbox/llmsandbox/backend"
)

var testHints = Hints{Engine: "Engine", Start: "START", Access: "ACCESS", TLS: "TLSFILES"}

// engineAPI answers a ping as an engine does, and upgrades an attach to a stream that
// sends back what it gets.
func engineAPI(t *testing.T) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("/_ping", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Api-Version", "1.41")
		w.Header().Set("Ostype", "linux")
	})
	mux.HandleFunc("/echo", func(w http.ResponseWriter, _ *http.Request) {
		conn, rw, err := http.NewResponseController(w).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		defer conn.Close()
		if _, err := rw.WriteString("HTTP/1.1 101 UPGRADED\r\nConnection: Upgrade\r\nUpgrade: tcp\r\n\r\n"); err != nil {
			t.Error(err)
		}
		if err := rw.Flush(); err != nil {
			t.Error(err)
		}
		if _, err := rw.WriteTo(conn); err != nil {
			t.Error(err)
		}
	})
	return mux
}

// ping makes a client of e and asks once.
func ping(t *testing.T, e Endpoint) error {
	t.Helper()
	c, err := e.NewClient()
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	got, err := c.Ping(t.Context(), client.PingOptions{NegotiateAPIVersion: true})
	if err == nil && (got.APIVersion != "1.41" || c.ClientVersion() != "1.41") {
		t.Errorf("API version %s offered, %s in use, want 1.41 for both", got.APIVersion, c.ClientVersion())
	}
	return err
}

// echo sends a sentence over a hijacked stream, ends it, and reads it back.
func echo(t *testing.T, e Endpoint) {
	t.Helper()
	c, err := e.NewClient()
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	conn, err := c.DialHijack(t.Context(), "/echo", "tcp", nil)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	const sentence = "there and back"
	if _, err := conn.Write([]byte(sentence)); err != nil {
		t.Fatal(err)
	}
	if err := closeWrite(conn); err != nil {
		t.Fatal(err)
	}
	got, err := io.ReadAll(conn)
	if err != nil {
		t.Fatal(err)
	}
	if string(got) != sentence {
		t.Errorf("the stream gave back %q, want %q", got, sentence)
	}
}

// wantError checks that err says what is wrong and what to do, and nothing of the
// client's own text.
func wantError(t *testing.T, err error, kind Kind, words ...string) {
	t.Helper()
	if err == nil {
		t.Fatalf("no error, want one of kind %q", kind)
	}
	var e *Error
	if !errors.As(err, &e) {
		t.Fatalf("%v (%T) is no *Error, want an error of type %T", err, err, e)
	}
	if e.Kind != kind {
		t.Errorf("kind %q, want %q: %v", e.Kind, kind, err)
	}
	if !errors.Is(err, backend.ErrUnsupported) {
		t.Errorf("%v does not wrap ErrUnsupported, want backend.ErrUnsupported", err)
	}
	text := Explain(err).Error()
	for _, w := range append(words, "cannot reach Engine at "+e.Host) {
		if !strings.Contains(text, w) {
			t.Errorf("%q lacks %q", text, w)
		}
	}
	if strings.Contains(text, "Head \"") || strings.Contains(text, "Get \"") || strings.Contains(text, "docker daemon") {
		t.Errorf("%q has the client's own words in it, want text without \"Head \\\"\", text without \"Get \\\"\", text without \"docker daemon\"", text)
	}
}

// listen returns a listener on loopback that ends with the test.
func listen(t *testing.T) net.Listener {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := l.Close(); err != nil && !errors.Is(err, net.ErrClosed) {
			t.Error(err)
		}
	})
	return l
}

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }
