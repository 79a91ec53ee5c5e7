package agentclient

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/llmsandbox/llmsandbox/internal/agentproto"
)

func TestRequests(t *testing.T) {
	a := &fakeAgent{}
	c, _ := connect(t, a)
	ctx := soon(t)
	if info := c.Info(); info.Arch != "fake" || info.CodeUID != 1000 {
		t.Errorf("info: %+v, want Arch = \"fake\", CodeUID = 1000", info)
	}
	list, err := c.Processes(ctx)
	if err != nil || len(list) != 1 || list[0].Tag != "tag" {
		t.Errorf("list = %v, err = %v, want no error, len(list) = 1, Tag = \"tag\"", list, err)
	}
	if n, err := c.Count(ctx); err != nil || n != 2 {
		t.Errorf("n = %v, err = %v, want no error, n = 2", n, err)
	}
	size := agentproto.WinSize{Rows: 24, Cols: 80}
	for _, err := range []error{
		c.Signal(ctx, 7, 15, true), c.Kill(ctx, 7), c.KillAfter(ctx, 7, 1500*time.Millisecond), c.Resize(ctx, 7, size), c.Ping(ctx), c.Shutdown(ctx),
	} {
		if err != nil {
			t.Error(err)
		}
	}
	want := []agentproto.Message{
		&agentproto.SignalRequest{ID: 7, Signal: 15, Group: true}, &agentproto.KillRequest{ID: 7}, &agentproto.KillRequest{ID: 7, AfterMillis: 1500},
		&agentproto.ResizeRequest{ID: 7, Size: size}, &agentproto.Empty{},
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if diff := cmp.Diff(want, a.requests); diff != "" {
		t.Errorf("differs (-want +got):\n%s", diff)
	}
}

func TestRequestsEndWithContextAndStream(t *testing.T) {
	c, far := connect(t, &fakeAgent{})
	cancelled, cancel := context.WithCancel(t.Context())
	cancel()
	if err := c.Kill(cancelled, 1); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	if _, err := c.Start(cancelled, argv("x")); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	far.Close()
	<-c.Done()
	if err := c.Err(); !errors.Is(err, agentproto.ErrStreamLost) {
		t.Error(err)
	}
	if _, err := c.Processes(soon(t)); !errors.Is(err, agentproto.ErrStreamLost) {
		t.Error(err)
	}
	if _, err := c.Start(soon(t), argv("x")); !errors.Is(err, agentproto.ErrStreamLost) {
		t.Error(err)
	}
}

func TestDial(t *testing.T) {
	c, _ := connect(t, &fakeAgent{})
	if _, err := c.Dial(soon(t), 81); !errors.Is(err, fs.ErrNotExist) {
		t.Error(err)
	}
	s, err := c.Dial(soon(t), 80)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.WriteString(s, "hello"); err != nil {
		t.Fatal(err)
	}
	if err := s.CloseWrite(); err != nil {
		t.Fatal(err)
	}
	if b, err := io.ReadAll(s); string(b) != "got hello" || err != nil {
		t.Errorf("%q %v, want b = \"got hello\", no error", b, err)
	}
	if _, err := io.WriteString(s, "more"); !errors.Is(err, io.ErrClosedPipe) {
		t.Error(err)
	}
	if err := s.CloseWrite(); err != nil {
		t.Error(err)
	}
	s.Close()
	if _, err := s.Read(make([]byte, 1)); err == nil {
		t.Error("a closed stream can be read: got no error, want an error")
	}
}

func TestConnectToSomethingElse(t *testing.T) {
	stream := struct {
		io.Reader
		io.Writer
		io.Closer
	}{strings.NewReader("OCI runtime exec failed: exec failed\n"), io.Discard, io.NopCloser(nil)}
	_, err := Connect(t.Context(), stream)
	if err == nil || !strings.Contains(err.Error(), `"OCI runtime exec failed`) {
		t.Error(err)
	}
}
