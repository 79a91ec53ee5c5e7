package agentclient

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/google/go-cmp/cmp"

	"github.com/llmsandbox/llmsandbox/internal/agentproto"
)

// serveCall is an agent that serves every call in one way.
type serveCall func(*agentproto.Call)

func (f serveCall) ServeCall(c *agentproto.Call) { f(c) }

func connectTo(t *testing.T, agent serveCall) *Client {
	t.Helper()
	near, far := net.Pipe()
	served := make(chan struct{})
	go func() {
		defer close(served)
		agentproto.Server(far, agentproto.Hello{}, 0, agent)
	}()
	c, err := Connect(t.Context(), near)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		c.Close()
		<-served
	})
	return c
}

// sends serves reading calls: it sends content, if it is to begin with a file's
// description, and ends.
func sends(content string, begin bool, final agentproto.Message) serveCall {
	return func(c *agentproto.Call) {
		if begin {
			c.Send(&agentproto.FileInfo{})
		}
		if _, err := c.Write(agentproto.ChanOut, []byte(content)); err != nil {
			return
		}
		c.CloseWrite(agentproto.ChanOut)
		c.End(final)
	}
}

// endless sends until no reader wants more, and reports when that was.
func endless(begin bool) (serveCall, chan error) {
	ended := make(chan error, 1)
	return func(c *agentproto.Call) {
		if begin {
			c.Send(&agentproto.FileInfo{})
		}
		for {
			if _, err := c.Write(agentproto.ChanOut, make([]byte, 1<<16)); err != nil {
				ended <- err
				return
			}
		}
	}, ended
}

func TestFileRequests(t *testing.T) {
	requests := map[agentproto.Method]agentproto.Message{
		agentproto.MethodStat: new(agentproto.PathRequest), agentproto.MethodList: new(agentproto.PathRequest),
		agentproto.MethodMkdir: new(agentproto.MkdirRequest), agentproto.MethodRemove: new(agentproto.RemoveRequest),
		agentproto.MethodRename: new(agentproto.RenameRequest), agentproto.MethodChmod: new(agentproto.ChmodRequest),
	}
	replies := map[agentproto.Method]agentproto.Message{
		agentproto.MethodStat: &agentproto.FileInfo{Name: "n"}, agentproto.MethodList: &agentproto.FileList{Truncated: true},
	}
	c := connectTo(t, func(call *agentproto.Call) {
		call.Request(requests[call.Method()])
		reply := replies[call.Method()]
		if reply == nil {
			reply = &agentproto.Empty{}
		}
		call.End(reply)
	})
	ctx := soon(t)
	info, err := c.Stat(ctx, "s")
	if err != nil || info.Name != "n" {
		t.Errorf("info = %v, err = %v, want no error, Name = \"n\"", info, err)
	}
	list, err := c.List(ctx, "l")
	if err != nil || !list.Truncated {
		t.Errorf("list = %v, err = %v, want no error, Truncated true", list, err)
	}
	for _, err := range []error{
		c.Mkdir(ctx, "m", 0o700, true), c.Remove(ctx, "r", RemoveOptions{Recursive: true, Missing: true}),
		c.Rename(ctx, "from", "to"), c.Chmod(ctx, "c", 0o600),
	} {
		if err != nil {
			t.Error(err)
		}
	}
	want := map[agentproto.Method]agentproto.Message{
		agentproto.MethodStat: &agentproto.PathRequest{Path: "s"}, agentproto.MethodList: &agentproto.PathRequest{Path: "l"},
		agentproto.MethodMkdir:  &agentproto.MkdirRequest{Path: "m", Mode: 0o700, Parents: true},
		agentproto.MethodRemove: &agentproto.RemoveRequest{Path: "r", Recursive: true, Missing: true},
		agentproto.MethodRename: &agentproto.RenameRequest{From: "from", To: "to"},
		agentproto.MethodChmod:  &agentproto.ChmodRequest{Path: "c", Mode: 0o600},
	}
	if diff := cmp.Diff(want, requests); diff != "" {
		t.Errorf("differs (-want +got):\n%s", diff)
	}
}

func TestReadFile(t *testing.T) {
	content := strings.Repeat("content", 100_000)
	c := connectTo(t, sends(content, true, &agentproto.Empty{}))
	var got bytes.Buffer
	if n, err := c.ReadFile(soon(t), "f", &got); n != int64(len(content)) || err != nil || got.String() != content {
		t.Errorf("n = %v, err = %v, want n = %v, no error, got = %v", n, err, int64(len(content)), content)
	}
	if b, err := c.ReadAll(soon(t), "f", int64(len(content))); string(b) != content || err != nil {
		t.Errorf("len(b) = %v, err = %v, want b = %v, no error", len(b), err, content)
	}
	var e *agentproto.Error
	if b, err := c.ReadAll(soon(t), "f", int64(len(content))-1); !errors.As(err, &e) || e.Code != agentproto.CodeTooLarge {
		t.Errorf("len(b) = %v, err = %v, want an error of type %T, Code = CodeTooLarge", len(b), err, e)
	}
}

func TestReadFileFailures(t *testing.T) {
	agent, ended := endless(true)
	c := connectTo(t, agent)
	if _, err := c.ReadFile(soon(t), "f", brokenWriter{}); !errors.Is(err, io.ErrShortWrite) {
		t.Error(err)
	}
	<-ended
	ctx, cancel := context.WithCancel(soon(t))
	if _, err := c.ReadFile(ctx, "f", onWrite(cancel)); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	<-ended
	failing := connectTo(t, func(call *agentproto.Call) {
		call.Send(&agentproto.FileInfo{})
		call.Write(agentproto.ChanOut, []byte("some"))
		call.Fail(agentproto.Errorf(agentproto.CodeInternal, "input/output error"))
	})
	var got bytes.Buffer
	if n, err := failing.ReadFile(soon(t), "f", &got); n != 4 || err == nil || err.Error() != "input/output error" {
		t.Errorf("n = %v, err = %v, want n = 4, an error, err = \"input/output error\"", n, err)
	}
}

type brokenWriter struct{}

func (brokenWriter) Write([]byte) (int, error) { return 0, io.ErrShortWrite }

type onWrite func()

func (f onWrite) Write(p []byte) (int, error) {
	f()
	return len(p), nil
}

func TestWriteFile(t *testing.T) {
	var req agentproto.WriteRequest
	var got []byte
	c := connectTo(t, func(call *agentproto.Call) {
		call.Request(&req)
		got, _ = io.ReadAll(input{call})
		call.End(&agentproto.FileInfo{Size: uint64(len(got))})
	})
	content := strings.Repeat("content", 200_000)
	o := WriteOptions{Offset: 1, Mode: 0o640, Create: true, Exclusive: true, Truncate: true, Parents: true}
	info, err := c.WriteFile(soon(t), "f", strings.NewReader(content), o)
	if err != nil || info.Size != uint64(len(content)) || string(got) != content {
		t.Errorf("info = %v, err = %v, want no error, Size = %v, got = %v", info, err, uint64(len(content)), content)
	}
	want := agentproto.WriteRequest{Path: "f", Offset: 1, Mode: 0o640, Create: true, Exclusive: true, Truncate: true, Parents: true}
	if diff := cmp.Diff(want, req); diff != "" {
		t.Errorf("differs (-want +got):\n%s", diff)
	}
}

func TestWriteFileFailures(t *testing.T) {
	ended := make(chan error, 1)
	c := connectTo(t, func(call *agentproto.Call) {
		_, err := io.Copy(io.Discard, input{call})
		ended <- err
		<-call.Done()
	})
	broken := errors.New("the caller's own")
	if _, err := c.WriteFile(soon(t), "f", io.MultiReader(strings.NewReader("some"), iotest.ErrReader(broken)), WriteOptions{}); !errors.Is(err, broken) {
		t.Error(err)
	}
	if err := <-ended; err == nil {
		t.Error("the agent took half a file for a whole one: got no error, want an error")
	}
	ctx, cancel := context.WithCancel(soon(t))
	if _, err := c.WriteFile(ctx, "f", &cancelling{cancel: cancel}, WriteOptions{}); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	<-ended
	full := connectTo(t, func(call *agentproto.Call) {
		input{call}.Read(make([]byte, 1))
		call.Fail(agentproto.Errorf(agentproto.CodeNoSpace, "no space left"))
	})
	if _, err := full.WriteFile(soon(t), "f", zeros{}, WriteOptions{}); err == nil || err.Error() != "no space left" {
		t.Error(err)
	}
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) {
	clear(p)
	return len(p), nil
}

// cancelling ends its context once the call's window is full.
type cancelling struct {
	zeros
	cancel func()
	reads  int
}

func (c *cancelling) Read(p []byte) (int, error) {
	if c.reads++; c.reads == 20 {
		c.cancel()
	}
	return c.zeros.Read(p)
}

func TestTar(t *testing.T) {
	result := &agentproto.TarResult{Files: 1, Bytes: 2, Skipped: []string{"s"}}
	var got bytes.Buffer
	out := connectTo(t, sends("archive", false, result))
	if res, err := out.TarOut(soon(t), "/p", "prefix", &got); err != nil || got.String() != "archive" || !cmp.Equal(res, *result) {
		t.Errorf("res = %v, err = %v, want no error, got = \"archive\", cmp.Equal(res, *result) = true", res, err)
	}
	var req agentproto.TarInRequest
	in := connectTo(t, func(call *agentproto.Call) {
		call.Request(&req)
		io.Copy(io.Discard, input{call})
		call.End(result)
	})
	res, err := in.TarIn(soon(t), "/d", strings.NewReader("archive"), TarLimits{MaxBytes: 3, MaxFiles: 4})
	if err != nil || !cmp.Equal(res, *result) || req != (agentproto.TarInRequest{Dir: "/d", MaxBytes: 3, MaxFiles: 4}) {
		t.Errorf("res = %v, err = %v, req = %v, want no error, cmp.Equal(res, *result) = true, req = %v", res, err, req, agentproto.TarInRequest{Dir: "/d", MaxBytes: 3, MaxFiles: 4})
	}
	agent, ended := endless(false)
	c := connectTo(t, agent)
	if _, err := c.TarOut(soon(t), "/p", "", brokenWriter{}); !errors.Is(err, io.ErrShortWrite) {
		t.Error(err)
	}
	<-ended
}

func TestWatchEnds(t *testing.T) {
	ended := make(chan struct{}, 1)
	c := connectTo(t, func(call *agentproto.Call) {
		call.Send(&agentproto.Empty{})
		for {
			if call.Send(&agentproto.WatchEvent{Op: agentproto.OpWrite, Path: "/f"}) != nil {
				ended <- struct{}{}
				return
			}
		}
	})
	events, err := c.Watch(soon(t), "/", true)
	if err != nil {
		t.Fatal(err)
	}
	for e, err := range events {
		if err != nil || e.Path != "/f" {
			t.Errorf("e = %v, err = %v, want no error, Path = \"/f\"", e, err)
		}
		break
	}
	<-ended
	ctx, cancel := context.WithCancel(soon(t))
	events, err = c.Watch(ctx, "/", true)
	if err != nil {
		t.Fatal(err)
	}
	cancel()
	for _, err := range events {
		if err != nil && !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
	}
	<-ended
}
