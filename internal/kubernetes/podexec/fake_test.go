package podexec

import (
	"encoding/json"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gorilla/websocket"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/remotecommand"
	"k8s.io/client-go/rest"
	"k8s.io/streaming/pkg/httpstream"
	httpspdy "k8s.io/streaming/pkg/httpstream/spdy"
)

// A program is what the fake API server runs for an exec or attach.
type program struct {
	argv           []string
	stdin          io.Reader
	stdout, stderr io.Writer
}

// A fake is an API server whose pods' programs are functions.
type fake struct {
	run         func(*program) *metav1.Status
	noWebSocket int            // when set, the code that it refuses WebSockets with
	refuse      *metav1.Status // when set, all it answers

	mu       sync.Mutex
	asked    []string // method and address
	programs sync.WaitGroup
}

// serve starts the fake and returns a dialer for it.
func (f *fake) serve(t *testing.T) *Dialer {
	t.Helper()
	s := httptest.NewServer(f)
	t.Cleanup(func() {
		s.Close()
		f.programs.Wait()
	})
	return dialer(t, s.URL)
}

func dialer(t *testing.T, url string) *Dialer {
	t.Helper()
	d, err := New(&rest.Config{Host: url, BearerToken: "secret"})
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func (f *fake) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	f.mu.Lock()
	f.asked = append(f.asked, r.Method+" "+r.URL.RequestURI())
	f.mu.Unlock()
	f.programs.Add(1)
	defer f.programs.Done()
	switch {
	case r.Header.Get("Authorization") != "Bearer secret":
		http.Error(w, "who are you", http.StatusUnauthorized)
	case f.refuse != nil:
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(int(f.refuse.Code))
		_ = json.NewEncoder(w).Encode(f.refuse)
	case r.Header.Get("Upgrade") != "websocket":
		f.spdy(w, r)
	case f.noWebSocket != 0:
		http.Error(w, "no websockets here", f.noWebSocket)
	default:
		f.webSocket(w, r)
	}
}

func (f *fake) webSocket(w http.ResponseWriter, r *http.Request) {
	u := websocket.Upgrader{Subprotocols: []string{channelProtocol}}
	conn, err := u.Upgrade(w, r, nil)
	if err != nil {
		return
	}
	defer conn.Close()
	in, stdin := io.Pipe()
	defer in.Close()
	fed := make(chan struct{})
	f.programs.Go(func() {
		defer close(fed)
		feedPipe(conn, stdin)
	})
	if r.URL.Query().Get("stdin") != "true" {
		_ = stdin.Close()
	}
	var mu sync.Mutex
	out := func(channel byte) io.Writer {
		return writerFunc(func(p []byte) (int, error) {
			mu.Lock()
			defer mu.Unlock()
			return len(p), conn.WriteMessage(websocket.BinaryMessage, append([]byte{channel}, p...))
		})
	}
	// As API servers do, to show that the stream is there.
	_, _ = out(channelStdout).Write(nil)
	status := f.run(&program{r.URL.Query()["command"], in, out(channelStdout), out(channelStderr)})
	_ = json.NewEncoder(out(channelStatus)).Encode(status)
	_ = conn.WriteMessage(websocket.CloseMessage, websocket.FormatCloseMessage(websocket.CloseNormalClosure, ""))
	// Closing a connection with pings that were not read yet resets it, and the client loses what is on its way.
	_ = in.Close()
	_ = conn.SetReadDeadline(time.Now().Add(10 * time.Second))
	<-fed
}

// feedPipe is the reading half of a WebSocket's server.
func feedPipe(conn *websocket.Conn, stdin *io.PipeWriter) {
	for {
		_, m, err := conn.ReadMessage()
		switch {
		case err != nil:
			_ = stdin.CloseWithError(err)
			return
		case m[0] == channelClose:
			_ = stdin.Close()
		default:
			_, _ = stdin.Write(m[1:])
		}
	}
}

type writerFunc func([]byte) (int, error)

func (w writerFunc) Write(p []byte) (int, error) { return w(p) }

func (f *fake) spdy(w http.ResponseWriter, r *http.Request) {
	want := 3
	if r.URL.Query().Get("stdin") == "true" {
		want++
	}
	streams := make(chan httpstream.Stream, want)
	w.Header().Set(httpstream.HeaderProtocolVersion, spdyProtocol)
	conn := httpspdy.NewResponseUpgrader().UpgradeResponse(w, r, func(s httpstream.Stream, _ <-chan struct{}) error {
		streams <- s
		return nil
	})
	if conn == nil {
		return
	}
	defer conn.Close()
	by := map[string]httpstream.Stream{}
	for range want {
		select {
		case s := <-streams:
			by[s.Headers().Get(corev1.StreamType)] = s
		case <-conn.CloseChan():
			return
		}
	}
	p := &program{r.URL.Query()["command"], strings.NewReader(""), by[corev1.StreamTypeStdout], by[corev1.StreamTypeStderr]}
	if s := by[corev1.StreamTypeStdin]; s != nil {
		p.stdin = s
	}
	status := f.run(p)
	_ = json.NewEncoder(by[corev1.StreamTypeError]).Encode(status)
	for _, s := range by {
		_ = s.Close()
	}
	<-conn.CloseChan()
}

func exited(code int) *metav1.Status {
	if code == 0 {
		return &metav1.Status{Status: metav1.StatusSuccess}
	}
	s := apierrors.NewInternalError(net.ErrClosed).ErrStatus
	s.Reason = remotecommand.NonZeroExitCodeReason
	s.Details = &metav1.StatusDetails{Causes: []metav1.StatusCause{{Type: remotecommand.ExitCodeCauseType, Message: strconv.Itoa(code)}}}
	return &s
}

func failed(words string) *metav1.Status {
	s := apierrors.NewInternalError(net.ErrClosed).ErrStatus
	s.Message = words
	return &s
}
