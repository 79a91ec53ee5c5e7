package httpapi

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/gorilla/websocket"

	"github.com/llmsandbox/llmsandbox"
	"github.com/llmsandbox/llmsandbox/internal/apitypes"
	"github.com/llmsandbox/llmsandbox/internal/service"
)

// A screen is the terminal of a client.
type screen struct {
	t       *testing.T
	conn    *websocket.Conn
	process uint64
	shown   strings.Builder // all of it
	passed  int             // of shown, what until has passed
}

// dial asks for a WebSocket and returns it, or the answer that is none.
func (c *client) dial(path string, headers ...string) (*websocket.Conn, *http.Response) {
	c.t.Helper()
	header := c.request(http.MethodGet, path, "", headers...).Header
	conn, res, err := websocket.DefaultDialer.DialContext(testContext(c.t), strings.Replace(c.address, "http", "ws", 1)+path, header)
	if err != nil && !errors.Is(err, websocket.ErrBadHandshake) {
		c.t.Fatal(err)
	}
	if err == nil {
		c.t.Cleanup(func() { _ = conn.Close() })
	}
	return conn, res
}

// terminal opens or attaches to a terminal.
func (c *client) terminal(path string, headers ...string) *screen {
	c.t.Helper()
	conn, res := c.dial(path, headers...)
	if conn == nil {
		c.t.Fatalf("%s: %d, want a WebSocket", path, res.StatusCode)
	}
	s := &screen{t: c.t, conn: conn}
	first := s.event()
	if s.process = first.Process; s.process == 0 || s.shown.Len() > 0 {
		c.t.Fatalf("%s: first %+v after %q, want the number of a process before all else", path, first, s.shown.String())
	}
	return s
}

// event reads to the next event.
func (s *screen) event() apitypes.TerminalEvent {
	s.t.Helper()
	for {
		kind, message, err := s.conn.ReadMessage()
		if err != nil {
			s.t.Fatalf("after %q: %v, want an event", s.shown.String(), err)
		}
		if kind == websocket.BinaryMessage {
			s.shown.Write(message)
			continue
		}
		var e apitypes.TerminalEvent
		if err := json.Unmarshal(message, &e); err != nil {
			s.t.Fatalf("%v: %s", err, message)
		}
		return e
	}
}

// until reads until a text is shown behind the one before.
func (s *screen) until(text string) {
	s.t.Helper()
	for {
		if at := strings.Index(s.shown.String()[s.passed:], text); at >= 0 {
			s.passed += at + len(text)
			return
		}
		kind, message, err := s.conn.ReadMessage()
		if err != nil || kind != websocket.BinaryMessage {
			s.t.Fatalf("after %q: %s, %v, want %q", s.shown.String(), message, err, text)
		}
		s.shown.Write(message)
	}
}

func (s *screen) send(kind int, message string) {
	s.t.Helper()
	if err := s.conn.WriteMessage(kind, []byte(message)); err != nil {
		s.t.Fatal(err)
	}
}

func (s *screen) typed(text string) { s.t.Helper(); s.send(websocket.BinaryMessage, text) }

// result is that of the last event.
func (s *screen) result() llmsandbox.Result {
	s.t.Helper()
	var res llmsandbox.Result
	if e := s.event(); e.Problem != nil || json.Unmarshal(e.Result, &res) != nil {
		s.t.Fatalf("got %+v, want a result", e)
	}
	return res
}

// closed is the code with which the server closes the connection.
func (s *screen) closed() int {
	s.t.Helper()
	_, message, err := s.conn.ReadMessage()
	var closed *websocket.CloseError
	if !errors.As(err, &closed) {
		s.t.Fatalf("got %q, %v, want that the server closes the connection", message, err)
	}
	return closed.Code
}

// TestTerminal: what is typed and shown, its size, and what became of its program.
func TestTerminal(t *testing.T) {
	c := serve(t, Config{})
	path, sb := c.create(`{"language": "bash"}`)
	s := c.terminal(path+"/terminals?cols=100&rows=30", "Sec-WebSocket-Protocol: "+apitypes.TerminalProtocol)
	if got := s.conn.Subprotocol(); got != apitypes.TerminalProtocol {
		t.Errorf("subprotocol %q, want %q", got, apitypes.TerminalProtocol)
	}
	s.typed("echo $((6*7)) $TERM $0\n")
	s.until("42 xterm-256color bash")
	s.typed("stty size\n")
	s.until("30 100")
	s.send(websocket.TextMessage, `{"resize":{"cols":90,"rows":20}}`)
	s.typed("stty size\n")
	s.until("20 90")
	var list apitypes.Processes
	c.want(http.StatusOK, &list, http.MethodGet, path+"/processes", "")
	if !slices.ContainsFunc(list.Processes, func(p apitypes.Process) bool { return p.ID == s.process && p.Running }) {
		t.Errorf("%+v, want the terminal's process %d", list, s.process)
	}
	s.typed("exit 3\n")
	if res := s.result(); res.Status != llmsandbox.StatusError || res.ExitCode != 3 || res.Stdout != "" || !res.StdoutTruncated || res.SandboxID != sb.ID {
		t.Errorf("%+v, want the exit code 3, and none of the output, which was shown", res)
	}
	if code := s.closed(); code != websocket.CloseNormalClosure {
		t.Errorf("closed with %d, want %d", code, websocket.CloseNormalClosure)
	}
	s = c.terminal(path + "/terminals?command=printf&command=%25s-&command=a+b&command=c")
	if res := s.result(); res.Status != llmsandbox.StatusOK || s.shown.String() != "a b-c-" {
		t.Errorf("%+v and %q, want what the command writes", res, s.shown.String())
	}
}

// TestTerminalAgain: the program of a client that breaks off goes on, and the next client finds it as it was. One client takes a terminal over from
// another, and it is ended by its own request.
func TestTerminalAgain(t *testing.T) {
	c := serve(t, Config{})
	path, _ := c.create(`{"language": "bash"}`)
	s := c.terminal(path + "/terminals")
	s.typed("X=kept; echo $((40+2))\n")
	s.until("42\r\n")
	if err := s.conn.NetConn().Close(); err != nil { // without a word
		t.Fatal(err)
	}
	again := fmt.Sprintf("%s/terminals?process=%d", path, s.process)
	second := c.terminal(again + "&cols=70&rows=10")
	second.typed("echo \"<$X>\"; stty size\n")
	second.until("<kept>\r\n10 70\r\n")
	third := c.terminal(again)
	if e := second.event(); e.Problem == nil || e.Problem.Code != "detached" {
		t.Errorf("got %+v, want that another client has the terminal", e)
	}
	third.typed("echo \"<$X>\"; stty size\n")
	third.until("<kept>\r\n10 70\r\n")
	one := fmt.Sprintf("%s/terminals/%d", path, s.process)
	c.as(keyB).want(http.StatusNotFound, nil, http.MethodDelete, one, "")
	c.as(keyAReads).want(http.StatusForbidden, nil, http.MethodDelete, one, "")
	c.want(http.StatusNoContent, nil, http.MethodDelete, one, "")
	if res := third.result(); res.Status != llmsandbox.StatusKilled {
		t.Errorf("got %+v, want that it was killed", res)
	}
	c.want(http.StatusNotFound, nil, http.MethodDelete, path+"/terminals/99", "")
	// One that no client is attached to is ended as well.
	s = c.terminal(path + "/terminals")
	s.typed("echo $((40+2))\n")
	s.until("42\r\n")
	if err := s.conn.Close(); err != nil {
		t.Fatal(err)
	}
	c.want(http.StatusNoContent, nil, http.MethodDelete, fmt.Sprintf("%s/terminals/%d", path, s.process), "")
	s = c.terminal(path + "/terminals")
	c.want(http.StatusNoContent, nil, http.MethodDelete, path, "")
	if e := s.event(); e.Result == nil && e.Problem == nil {
		t.Errorf("got %+v, want that it ends with its sandbox", e)
	}
}

// TestTerminalRefuses: who has no use of a terminal, and what cannot be one.
func TestTerminalRefuses(t *testing.T) {
	c := serve(t, Config{Origins: []string{"https://app.example.org"}})
	path, _ := c.create(`{"language": "bash"}`)
	path += "/terminals"
	nobody := c.as("")
	for name, test := range map[string]struct {
		client  *client
		query   string
		headers []string
		status  int
		code    string
	}{
		"no WebSocket":         {c, "", nil, http.StatusUpgradeRequired, "upgrade_required"},
		"another version":      {c, "", []string{"Upgrade: websocket", "Connection: Upgrade", "Sec-WebSocket-Version: 12"}, http.StatusBadRequest, "invalid"},
		"another project":      {c.as(keyB), "", nil, http.StatusNotFound, "not_found"},
		"a key that reads":     {c.as(keyAReads), "", nil, http.StatusForbidden, "scope"},
		"no key":               {nobody, "", nil, http.StatusUnauthorized, "unauthorized"},
		"a key in the address": {nobody, "?key=" + keyA, nil, http.StatusUnauthorized, "unauthorized"},
		"another page":         {c, "", []string{"Origin: https://evil.example"}, http.StatusForbidden, "forbidden"},
		"a page without one":   {c, "", []string{"Origin: null"}, http.StatusForbidden, "forbidden"},
		"columns alone":        {c, "?cols=80", nil, http.StatusUnprocessableEntity, "invalid"},
		"no columns":           {c, "?cols=0&rows=1", nil, http.StatusUnprocessableEntity, "invalid"},
		"too many columns":     {c, "?cols=1001&rows=1", nil, http.StatusUnprocessableEntity, "invalid"},
		"two programs":         {c, "?process=1&command=sh", nil, http.StatusUnprocessableEntity, "invalid"},
	} {
		res, text := test.client.do(http.MethodGet, path+test.query, "", test.headers...)
		if res.StatusCode != test.status || !strings.Contains(text, `"code":"`+test.code+`"`) || (res.Header.Get("Upgrade") != "") != (test.status == http.StatusUpgradeRequired) {
			t.Errorf("%s: %d %v %s, want %d %s", name, res.StatusCode, res.Header, text, test.status, test.code)
		}
	}
	// The key of a page is one of the subprotocols that it offers. It is no other key's, and is not said back.
	for offered, want := range map[string]int{
		apitypes.TerminalProtocol + ", " + apitypes.KeyProtocol + keyA:                                      http.StatusSwitchingProtocols,
		apitypes.KeyProtocol + keyA + "," + apitypes.TerminalProtocol:                                       http.StatusSwitchingProtocols,
		apitypes.TerminalProtocol + ", " + apitypes.KeyProtocol + "nobody":                                  http.StatusUnauthorized,
		apitypes.TerminalProtocol + ", " + apitypes.KeyProtocol + keyA + ", " + apitypes.KeyProtocol + keyA: http.StatusUnauthorized,
		apitypes.TerminalProtocol + ", " + apitypes.KeyProtocol + keyAReads:                                 http.StatusForbidden,
		apitypes.TerminalProtocol + ", " + apitypes.KeyProtocol + keyB:                                      http.StatusNotFound,
		apitypes.TerminalProtocol: http.StatusUnauthorized,
	} {
		conn, res := nobody.dial(path, "Sec-WebSocket-Protocol: "+offered, "Origin: https://app.example.org")
		if res.StatusCode != want || conn != nil && conn.Subprotocol() != apitypes.TerminalProtocol {
			t.Errorf("%s: %d %v, want %d, and %s alone", offered, res.StatusCode, res.Header, want, apitypes.TerminalProtocol)
		}
	}
	// An ordinary request has no key in its subprotocols.
	nobody.want(http.StatusUnauthorized, nil, http.MethodGet, "/v1/sandboxes", "", "Sec-WebSocket-Protocol: "+apitypes.KeyProtocol+keyA)
	// What goes on without a client has others that follow it, from which it is not taken.
	var started struct{ ID uint64 }
	c.want(http.StatusCreated, &started, http.MethodPost, strings.Replace(path, "terminals", "processes", 1), `{"argv": ["sleep", "1000"]}`)
	c.want(http.StatusUnprocessableEntity, nil, http.MethodGet, fmt.Sprintf("%s?process=%d", path, started.ID), "")
	c.want(http.StatusUnprocessableEntity, nil, http.MethodDelete, fmt.Sprintf("%s/%d", path, started.ID), "")
	for query, want := range map[string]string{"?process=99": "file_not_found", "?command=/none": "file_not_found", "?command=/": "permission"} {
		conn, _ := c.dial(path + query)
		s := &screen{t: t, conn: conn}
		if e := s.event(); e.Problem == nil || e.Problem.Code != want || s.closed() != websocket.CloseNormalClosure {
			t.Errorf("%s: %+v, want %s", query, e, want)
		}
	}
}

// TestTerminalMessages: a client that says what nobody understands, or too much at once, is let go of, and its program goes on.
func TestTerminalMessages(t *testing.T) {
	c := serve(t, Config{})
	path, _ := c.create(`{"language": "bash"}`)
	first := c.terminal(path + "/terminals")
	again := fmt.Sprintf("%s/terminals?process=%d", path, first.process)
	first.send(websocket.TextMessage, `{"resize":{"cols":0,"rows":0}}`)
	if e := first.event(); e.Problem == nil || e.Problem.Code != "invalid" || first.closed() != websocket.ClosePolicyViolation {
		t.Errorf("got %+v, want a problem", e)
	}
	s := c.terminal(again)
	s.typed(strings.Repeat("#", apitypes.MaxTerminalMessage+1))
	for kind := websocket.BinaryMessage; kind == websocket.BinaryMessage; {
		var err error
		if kind, _, err = s.conn.ReadMessage(); err != nil && !websocket.IsCloseError(err, websocket.CloseMessageTooBig) {
			t.Errorf("got %v, want that the message is too large", err)
		}
	}
	s = c.terminal(again)
	s.typed("echo $((6*7))\n")
	s.until("42\r\n")
}

// TestTerminalEndsWithServer: a server that ends lets go of clients, also of one that does not read.
func TestTerminalEndsWithServer(t *testing.T) {
	var events []AuditEvent
	c := serve(t, Config{Audit: func(_ context.Context, more []AuditEvent) error { events = append(events, more...); return nil }})
	path, _ := c.create(`{"language": "bash"}`)
	s := c.terminal(path + "/terminals")
	flood := c.terminal(path + "/terminals?command=yes")
	flood.until("y\r\n") // and no more
	c.stop()
	for { // the prompt
		if _, _, err := s.conn.ReadMessage(); err != nil {
			if !websocket.IsCloseError(err, websocket.CloseGoingAway) {
				t.Errorf("got %v, want that the server goes away", err)
			}
			break
		}
	}
	var got []string
	for _, e := range events[1:] {
		got = append(got, fmt.Sprintln(e.KeyName, e.Operation, e.Status, e.Outcome))
	}
	if want := "one open-terminal 101 detached\n"; !slices.Equal(got, []string{want, want}) {
		t.Errorf("the audit log has %q, want %q twice", got, want)
	}
}

// TestSockets: connections without an end are counted by project and together, and end with the server.
func TestSockets(t *testing.T) {
	stopping, stop := context.WithCancel(t.Context())
	s := newSockets(stopping)
	var leaves []func()
	enter := func(project string) error {
		ctx, leave, err := s.enter(t.Context(), project)
		if err == nil {
			leaves = append(leaves, func() { <-ctx.Done(); leave() })
		}
		return err
	}
	for range maxSocketsOfProject {
		if err := enter("a"); err != nil {
			t.Fatal(err)
		}
	}
	if err := enter("a"); !errors.Is(err, service.ErrBusy) {
		t.Errorf("one too many of a project: %v, want ErrBusy", err)
	}
	for i := range maxSockets - maxSocketsOfProject {
		if err := enter(fmt.Sprint(i)); err != nil {
			t.Fatal(err)
		}
	}
	if err := enter("b"); !errors.Is(err, service.ErrBusy) {
		t.Errorf("one too many of all: %v, want ErrBusy", err)
	}
	for _, leave := range leaves {
		go leave()
	}
	stop()
	s.wait()
	if err := enter("a"); !errors.Is(err, service.ErrClosed) || s.all != 0 || len(s.of) != 0 {
		t.Errorf("afterwards: %v, %d of %v, want ErrClosed and none", err, s.all, s.of)
	}
}
