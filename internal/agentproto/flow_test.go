package agentproto

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// A sender stops at the window, whatever another call does meanwhile.
func TestSlowReaderHoldsBackOnlyItsOwnCall(t *testing.T) {
	var sent atomic.Int64
	const total = 4 << 20
	conn := pair(t, func(c *Call) {
		if c.Method() != MethodRead {
			echoHandler(c)
			return
		}
		piece := make([]byte, 1000)
		for i := range piece {
			piece[i] = byte(i)
		}
		for sent.Load() < total {
			n, err := c.Write(ChanOut, piece[:min(1000, total-sent.Load())])
			sent.Add(int64(n))
			if err != nil {
				t.Error(err)
				return
			}
		}
		c.End(&Empty{})
	})
	slow, err := conn.Open(MethodRead, &ReadRequest{})
	if err != nil {
		t.Fatal(err)
	}
	one := make([]byte, 1)
	if _, err := slow.Read(ChanOut, one); err != nil {
		t.Fatal(err)
	}
	for range 50 {
		if err := exchange(conn); err != nil {
			t.Fatal(err)
		}
	}
	if n := sent.Load(); n > Window {
		t.Errorf("%d bytes sent without an acknowledgement, want at most Window", n)
	}
	rest, err := io.ReadAll(reader{slow, ChanOut})
	if err != nil || len(rest) != total-1 {
		t.Fatalf("len(rest) = %v, err = %v, want no error, len(rest) = %v", len(rest), err, total-1)
	}
	for i, b := range rest {
		if b != byte((i+1)%1000) {
			t.Fatalf("byte %d is %d, want b = byte((i+1)%%1000)", i, b)
		}
	}
}

func TestManyMessagesHoldBackTheirSender(t *testing.T) {
	var sent atomic.Int64
	const total = 50_000
	conn := pair(t, func(c *Call) {
		for sent.Load() < total {
			if err := c.Send(&WatchEvent{Op: OpWrite, Path: "/sandbox/file"}); err != nil {
				t.Error(err)
				return
			}
			sent.Add(1)
		}
		c.End(&WatchEvent{})
	})
	call, err := conn.Open(MethodWatch, &WatchRequest{})
	if err != nil {
		t.Fatal(err)
	}
	if err := conn.Ping(t.Context()); err != nil {
		t.Fatal(err)
	}
	if n := sent.Load(); n > Window/64 {
		t.Errorf("%d messages sent without an acknowledgement, want at most %d", n, Window/64)
	}
	var n int
	for {
		final, err := call.Recv(t.Context(), &WatchEvent{})
		if err != nil {
			t.Fatal(err)
		}
		if final {
			break
		}
		n++
	}
	if n != total {
		t.Errorf("%d messages, want %d", n, total)
	}
}

// A call whose large messages are not received does not stop the large ones of others.
func TestUnreadLargeMessages(t *testing.T) {
	large := &PathRequest{Path: string(make([]byte, Window+MaxFrame))}
	conn := pair(t, func(c *Call) {
		for c.Send(large) == nil && c.Method() == MethodWatch {
		}
		c.End(large)
	})
	stalled, err := conn.Open(MethodWatch, &Empty{})
	if err != nil {
		t.Fatal(err)
	}
	for range 5 {
		call, err := conn.Open(MethodStat, large)
		if err != nil {
			t.Fatal(err)
		}
		for range 2 {
			if _, err := call.Recv(t.Context(), &PathRequest{}); err != nil {
				t.Fatal(err)
			}
		}
	}
	stalled.Cancel()
}

func TestManyCallsAtOnce(t *testing.T) {
	conn := socketPair(t, echoHandler)
	var wg sync.WaitGroup
	for range 300 {
		wg.Go(func() {
			for range 3 {
				if err := exchange(conn); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
}

// Messages in fragments go both ways while other calls run.
func TestLargeMessages(t *testing.T) {
	conn := socketPair(t, func(c *Call) {
		if c.Method() == MethodStart {
			echoHandler(c)
			return
		}
		var req PathRequest
		if err := c.Request(&req); err != nil {
			t.Error(err)
		}
		c.Send(&PathRequest{Path: req.Path[1:]})
		c.End(&PathRequest{Path: req.Path[2:]})
	})
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			for _, size := range []int{2, MaxFrame - 5, MaxFrame, 3 * MaxFrame, 1<<20 + i, MaxMessage - 10} {
				path := string(bytes.Repeat([]byte{byte('a' + i)}, size))
				call, err := conn.Open(MethodStat, &PathRequest{Path: path})
				if err != nil {
					t.Error(err)
					return
				}
				var first, last PathRequest
				if final, err := call.Recv(t.Context(), &first); err != nil || final || first.Path != path[1:] {
					t.Errorf("size %d: first %d %v %v, want no error, final = false, first.Path = path[1:]", size, len(first.Path), final, err)
				}
				if final, err := call.Recv(t.Context(), &last); err != nil || !final || last.Path != path[2:] {
					t.Errorf("size %d: last %d %v %v, want no error, final = true, last.Path = path[2:]", size, len(last.Path), final, err)
				}
				if err := exchange(conn); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	_, err := conn.Open(MethodStat, &PathRequest{Path: string(make([]byte, MaxMessage))})
	if failure := (*Error)(nil); !errors.As(err, &failure) || failure.Code != CodeTooLarge {
		t.Error(err)
	}
}

func TestCancel(t *testing.T) {
	ended := make(chan error, 3)
	conn := pair(t, func(c *Call) {
		switch c.Method() {
		case MethodRead: // stuck at the window
			_, err := c.Write(ChanOut, make([]byte, 2*Window))
			ended <- err
		case MethodWrite: // stuck in a read
			_, err := c.Read(ChanIn, make([]byte, 10))
			ended <- err
		default: // waits for its end
			<-c.Done()
			ended <- c.Send(&Empty{})
		}
	})
	for _, m := range []Method{MethodRead, MethodWrite, MethodWatch} {
		call, err := conn.Open(m, &Empty{})
		if err != nil {
			t.Fatal(err)
		}
		stuck := make(chan error, 1)
		go func() {
			_, err := call.Recv(context.Background(), &Empty{})
			stuck <- err
		}()
		if m == MethodRead {
			if _, err := call.Read(ChanOut, make([]byte, 1)); err != nil {
				t.Fatal(err)
			}
		}
		call.Cancel()
		call.Cancel()
		for _, end := range []<-chan error{ended, stuck} {
			err := within(t, "cancel", end)
			if failure := (*Error)(nil); !errors.As(err, &failure) || failure.Code != CodeCancelled {
				t.Errorf("method %d: %v, want an error of type %T, Code = CodeCancelled", m, err, failure)
			}
		}
		if _, err := call.Read(ChanOut, make([]byte, 1)); err == nil || err == io.EOF {
			t.Errorf("read after cancel: %v, want an error, err != io.EOF", err)
		}
		within(t, "done", call.Done())
	}
	if err := conn.Ping(t.Context()); err != nil {
		t.Error(err)
	}
}

// TestBadRequest: a call whose request cannot be decoded is answered, and says so.
func TestBadRequest(t *testing.T) {
	conn := pair(t, func(c *Call) { c.Fail(c.Request(&StartRequest{})) })
	call, err := conn.Open(MethodStart, &Empty{})
	if err != nil {
		t.Fatal(err)
	}
	var failure *Error
	if _, err := call.Recv(t.Context(), &Empty{}); !errors.As(err, &failure) || failure.Code != CodeBadRequest {
		t.Errorf("got %v, want an error of code %v", err, CodeBadRequest)
	}
}

func TestFailure(t *testing.T) {
	conn := pair(t, func(c *Call) {
		if c.Method() == MethodStat {
			return // no answer
		}
		c.Write(ChanOut, []byte("before"))
		c.Fail(Errorf(CodeNotFound, "no such file: /x"))
		if err := c.End(&Empty{}); err != ErrCallEnded {
			t.Errorf("End after Fail: %v, want ErrCallEnded", err)
		}
	})
	call, _ := conn.Open(MethodRead, &Empty{})
	var failure *Error
	if _, err := call.Recv(t.Context(), &Empty{}); !errors.As(err, &failure) || failure.Code != CodeNotFound {
		t.Error(err)
	}
	if b, err := io.ReadAll(reader{call, ChanOut}); string(b) != "before" || !errors.As(err, &failure) {
		t.Errorf("%q %v, want b = \"before\", an error of type %T", b, err, failure)
	}
	call, _ = conn.Open(MethodStat, &Empty{})
	if _, err := call.Recv(t.Context(), &Empty{}); !errors.As(err, &failure) || failure.Code != CodeInternal {
		t.Error(err)
	}
}

func TestTooManyCalls(t *testing.T) {
	conn := pair(t, func(c *Call) { <-c.Done() })
	var calls []*Call
	for range maxCalls {
		call, err := conn.Open(MethodWatch, &Empty{})
		if err != nil {
			t.Fatal(err)
		}
		calls = append(calls, call)
	}
	_, err := conn.Open(MethodWatch, &Empty{})
	if failure := (*Error)(nil); !errors.As(err, &failure) || failure.Code != CodeBusy {
		t.Fatal(err)
	}
	for _, call := range calls {
		call.Cancel()
	}
	if _, err := conn.Open(MethodWatch, &Empty{}); err != nil {
		t.Fatal(err)
	}
}

func TestRecvEndsWithContext(t *testing.T) {
	conn := pair(t, echoHandler)
	call, err := conn.Open(MethodStart, &Empty{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := call.Recv(t.Context(), &Started{}); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
	defer cancel()
	if _, err := call.Recv(ctx, &Exit{}); !errors.Is(err, context.DeadlineExceeded) {
		t.Fatal(err)
	}
	call.CloseWrite(ChanIn) // the call itself goes on
	if final, err := call.Recv(t.Context(), &Exit{}); !final || err != nil {
		t.Fatalf("final = %v, err = %v, want final = true, no error", final, err)
	}
}

// A collectable call is over at the server only when everything was consumed.
func TestCollect(t *testing.T) {
	for _, read := range []bool{true, false} {
		t.Run(fmt.Sprint(read), func(t *testing.T) {
			collected := make(chan bool, 1)
			conn := pair(t, func(c *Call) {
				c.Write(ChanOut, []byte("out"))
				c.End(&Exit{})
				<-c.Done()
				collected <- c.Collected()
			})
			call, err := conn.Open(MethodStart, &Empty{})
			if err != nil {
				t.Fatal(err)
			}
			if _, err := call.Recv(t.Context(), &Exit{}); err != nil {
				t.Fatal(err)
			}
			if err := conn.Ping(t.Context()); err != nil {
				t.Fatal(err)
			}
			select {
			case <-collected:
				t.Fatal("the process has ended before its output was read, want it to wait for a reader")
			default:
			}
			if read {
				io.ReadAll(reader{call, ChanOut})
			} else {
				call.Cancel()
			}
			if got := within(t, "end", collected); got != read {
				t.Errorf("collected: %v, want %v", got, read)
			}
		})
	}
}

// Close ends whatever is going on, at any moment.
func TestCloseInTheMiddle(t *testing.T) {
	for i := range 50 {
		conn := socketPair(t, func(c *Call) {
			if c.Method() == MethodRead {
				c.Write(ChanOut, make([]byte, 10*Window))
				return
			}
			echoHandler(c)
		})
		var wg sync.WaitGroup
		for range 10 {
			wg.Go(func() {
				for {
					if err := exchange(conn); err != nil {
						if !errors.Is(err, ErrStreamLost) {
							t.Error(err)
						}
						return
					}
				}
			})
			wg.Go(func() {
				call, err := conn.Open(MethodRead, &Empty{})
				if err != nil {
					return
				}
				if _, err := io.Copy(io.Discard, reader{call, ChanOut}); err == nil {
					t.Error("a call without an answer ended well: got no error, want an error")
				}
			})
		}
		time.Sleep(time.Duration(i) * 100 * time.Microsecond) // any moment will do
		conn.Close()
		wg.Wait()
	}
}

// Several goroutines acknowledge while one reads: no acknowledgement comes after a later one, which
// would end the stream with all its calls.
func TestAcknowledgementsKeepTheirOrder(t *testing.T) {
	const total = 8 << 20
	conn := pair(t, func(c *Call) {
		piece := make([]byte, 100)
		for sent := 0; sent < total; {
			n, err := c.Write(ChanOut, piece)
			if sent += n; err != nil {
				t.Error(err)
				return
			}
		}
		c.End(&Empty{})
	})
	call, err := conn.Open(MethodRead, &ReadRequest{})
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	var others sync.WaitGroup
	for range 8 {
		others.Go(func() {
			for {
				select {
				case <-done:
					return
				default:
					call.Acknowledge()
				}
			}
		})
	}
	n, err := io.CopyBuffer(struct{ io.Writer }{io.Discard}, reader{call, ChanOut}, make([]byte, 50))
	close(done)
	others.Wait()
	if n < total || err != nil {
		t.Errorf("read %d bytes: %v, want at least %d", n, err, total)
	}
}
