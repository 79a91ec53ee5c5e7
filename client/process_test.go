package client_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/gorilla/websocket"

	"github.com/llmsandbox/llmsandbox"
	"github.com/llmsandbox/llmsandbox/client"
)

// A keyboard types at a process, and keeps what it shows.
type keyboard struct {
	t     *testing.T
	stdin *io.PipeReader
	keys  *io.PipeWriter

	mu    sync.Mutex
	shown string        // behind what was waited for
	more  chan struct{} // has one when shown is longer than it was
}

func newKeyboard(t *testing.T) *keyboard {
	k := &keyboard{t: t, more: make(chan struct{}, 1)}
	k.stdin, k.keys = io.Pipe()
	t.Cleanup(func() { _ = k.keys.Close() }) // a pipe's never fails
	return k
}

func (k *keyboard) Write(p []byte) (int, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.shown += string(p)
	select {
	case k.more <- struct{}{}:
	default:
	}
	return len(p), nil
}

// enter types a line and waits until a text is shown.
func (k *keyboard) enter(line, want string) {
	k.t.Helper()
	if _, err := io.WriteString(k.keys, line+"\n"); err != nil {
		k.t.Fatal(err)
	}
	for ctx := testContext(k.t); ; {
		k.mu.Lock()
		_, after, found := strings.Cut(k.shown, want)
		if found {
			k.shown = after
		}
		k.mu.Unlock()
		if found {
			return
		}
		select {
		case <-k.more:
		case <-ctx.Done():
			k.t.Fatalf("%s: %q, want %q", line, k.shown, want)
		}
	}
}

// TestStart: a process on a terminal is typed at, left, found again as it was, and killed.
func TestStart(t *testing.T) {
	ctx := testContext(t)
	sb := open(t, use(t), llmsandbox.Options{})
	k := newKeyboard(t)
	p, err := sb.Start(ctx, []string{"bash", "--norc"}, &llmsandbox.ExecOptions{Terminal: &llmsandbox.WinSize{Rows: 30, Cols: 100}, Stdin: k.stdin, Stdout: k})
	if err != nil {
		t.Fatal(err)
	}
	k.enter("X=kept; stty size", "30 100\r\n")
	if err := p.Resize(ctx, llmsandbox.WinSize{Rows: 20, Cols: 90}); err != nil {
		t.Fatal(err)
	}
	k.enter("stty size", "20 90\r\n")
	p.Detach()
	if res, err := p.Wait(ctx); !errors.Is(err, llmsandbox.ErrDetached) || res.Status != llmsandbox.StatusLost {
		t.Errorf("after Detach: %+v, %v, want ErrDetached", res, err)
	}
	k = newKeyboard(t)
	again, err := sb.AttachProcess(ctx, p.ID(), &llmsandbox.AttachOutput{Stdin: k.stdin, Stdout: k})
	if err != nil {
		t.Fatal(err)
	}
	k.enter(`echo "<$X>"; stty size`, "20 90\r\n")
	other, err := sb.AttachProcess(ctx, p.ID(), nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := again.Wait(ctx); !errors.Is(err, llmsandbox.ErrDetached) {
		t.Errorf("after another client has attached: %v, want ErrDetached", err)
	}
	if err := other.Kill(ctx); err != nil {
		t.Error(err)
	}
	if res, err := other.Wait(ctx); err != nil || res.Status != llmsandbox.StatusKilled || res.SandboxID != sb.ID() {
		t.Errorf("%+v, %v, want that it was killed", res, err)
	}
	if err := errors.Join(other.Kill(ctx), other.Resize(ctx, llmsandbox.WinSize{Rows: 1, Cols: 1})); err != nil {
		t.Errorf("after its end: %v, want no error", err)
	}
	other.Detach()
	p, err = sb.Start(ctx, []string{"sh", "-c", "exit 3"}, &llmsandbox.ExecOptions{Terminal: &llmsandbox.WinSize{Rows: 1, Cols: 1}})
	if err != nil {
		t.Fatal(err)
	}
	if res, err := p.Wait(ctx); err != nil || res.Status != llmsandbox.StatusError || res.ExitCode != 3 {
		t.Errorf("%+v, %v, want the exit code 3", res, err)
	}
}

// TestStartRefuses: what the API does not have, and what there is not.
func TestStartRefuses(t *testing.T) {
	ctx := testContext(t)
	sb := open(t, use(t), llmsandbox.Options{})
	size := &llmsandbox.WinSize{Rows: 24, Cols: 80}
	for name, test := range map[string]struct {
		argv []string
		opts *llmsandbox.ExecOptions
		want error
	}{
		"nothing":      {nil, &llmsandbox.ExecOptions{Terminal: size}, llmsandbox.ErrEmptyCommand},
		"a user":       {[]string{"sh"}, &llmsandbox.ExecOptions{Terminal: size, User: "root"}, llmsandbox.ErrUnsupported},
		"no program":   {[]string{"/none"}, &llmsandbox.ExecOptions{Terminal: size}, fs.ErrNotExist},
		"another size": {[]string{"sh"}, &llmsandbox.ExecOptions{Terminal: &llmsandbox.WinSize{Rows: 1, Cols: 2000}}, llmsandbox.ErrInvalid},
	} {
		if p, err := sb.Start(ctx, test.argv, test.opts); p != nil || !errors.Is(err, test.want) {
			t.Errorf("%s: %v, want %v", name, err, test.want)
		}
	}
	if p, err := sb.AttachProcess(ctx, 99, nil); p != nil || !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a process that there is not: %v, want fs.ErrNotExist", err)
	}
	if _, err := sb.AttachProcess(ctx, 1, &llmsandbox.AttachOutput{StdoutOffset: 1}); !errors.Is(err, llmsandbox.ErrUnsupported) {
		t.Errorf("an offset: %v, want ErrUnsupported", err)
	}
	over, cancel := context.WithCancel(ctx)
	cancel()
	if _, err := sb.Start(over, []string{"sh"}, &llmsandbox.ExecOptions{Terminal: size}); !errors.Is(err, context.Canceled) {
		t.Errorf("with a context that has ended: %v, want its error", err)
	}
}

// TestStartHostile: whatever a server says, a process has an end, and one that was not observed is lost.
func TestStartHostile(t *testing.T) {
	const first = `{"process":7}`
	for name, test := range map[string]struct {
		says   []string // messages; those that begin with { are text
		starts bool
		want   error
	}{
		"nothing":          {nil, false, llmsandbox.ErrLost},
		"output first":     {[]string{"output"}, false, llmsandbox.ErrLost},
		"no process":       {[]string{`{}`}, false, llmsandbox.ErrLost},
		"no event":         {[]string{`{"process":-1}`}, false, llmsandbox.ErrLost},
		"a problem":        {[]string{`{"problem":{"status":404,"code":"file_not_found","detail":"\u001b[31mno"}}`}, false, fs.ErrNotExist},
		"no end":           {[]string{first, "output"}, true, llmsandbox.ErrLost},
		"no status":        {[]string{first, `{"result":{}}`}, true, llmsandbox.ErrLost},
		"ok with a code":   {[]string{first, `{"result":{"status":"ok","exit_code":1}}`}, true, llmsandbox.ErrLost},
		"too much":         {[]string{first, strings.Repeat("x", 2000)}, true, llmsandbox.ErrLost},
		"a later problem":  {[]string{first, `{"problem":{"status":409,"code":"detached","detail":"no"}}`}, true, llmsandbox.ErrDetached},
		"what is not said": {[]string{first, `{"later":1}`, `{"result":{"status":"ok","exit_code":0}}`}, true, nil},
	} {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			switch {
			case strings.Contains(r.URL.Path, "/processes/"): // it has a terminal
				w.Header().Set("Content-Type", "application/problem+json")
				w.WriteHeader(http.StatusNotFound)
				fmt.Fprint(w, `{"status":404,"code":"not_found"}`)
				return
			case !websocket.IsWebSocketUpgrade(r):
				fmt.Fprint(w, `{"id":"sb-1","language":"bash"}`)
				return
			}
			upgrader := websocket.Upgrader{Subprotocols: []string{"llmsandbox.terminal"}}
			conn, err := upgrader.Upgrade(w, r, nil)
			if err != nil {
				t.Error(err)
				return
			}
			for _, message := range test.says {
				kind := websocket.BinaryMessage
				if strings.HasPrefix(message, "{") {
					kind = websocket.TextMessage
				}
				_ = conn.WriteMessage(kind, []byte(message)) // the client may have gone away
			}
			_ = conn.Close()
		}))
		ctx := testContext(t)
		sb, err := connect(t, server.URL, key, client.Options{MaxResult: 1000}).Attach(ctx, "sb-1")
		if err != nil {
			t.Fatal(err)
		}
		p, err := sb.AttachProcess(ctx, 7, nil)
		if (err == nil) != test.starts {
			t.Errorf("%s: %v, want it to start: %t", name, err, test.starts)
		}
		if err == nil {
			var res *llmsandbox.Result
			if res, err = p.Wait(ctx); res == nil || test.want != nil && res.Status != llmsandbox.StatusLost {
				t.Errorf("%s: %+v, want that it is lost", name, res)
			}
		}
		if !errors.Is(err, test.want) || err != nil && strings.Contains(err.Error(), "\x1b") {
			t.Errorf("%s: %v, want %v", name, err, test.want)
		}
		server.Close()
	}
}
