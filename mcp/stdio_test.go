package mcp

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"
)

// serveStdio runs a server on pipes, and returns the client's ends.
func serveStdio(t *testing.T, s *Server) (ctx context.Context, cancel func(), in io.WriteCloser, out *bufio.Reader, ended <-chan error) {
	t.Helper()
	theirIn, in := io.Pipe()
	ourOut, out0 := io.Pipe()
	ctx, stop := context.WithCancel(testContext(t))
	done := make(chan error, 1)
	go func() {
		err := s.RunStdio(ctx, theirIn, out0)
		_ = out0.Close() // a pipe's end
		done <- err
	}()
	t.Cleanup(func() {
		stop()
		_ = in.Close() // a pipe's end
	})
	return ctx, stop, in, bufio.NewReader(ourOut), done
}

const hello = `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}
{"jsonrpc":"2.0","method":"notifications/initialized"}
`

func callLine(id int, code string) string {
	quoted, _ := json.Marshal(code)
	return fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"execute_code","arguments":{"code":%s,"timeout":60}}}`+"\n", id, quoted)
}

// A client that writes all it wants and leaves, as a shell's pipe does, gets its answers.
func TestStdioAnswersWhoHasLeft(t *testing.T) {
	_, _, in, out, ended := serveStdio(t, newServer(t, Config{}))
	go func() {
		_, _ = io.WriteString(in, hello+callLine(2, "print('late')")) // the answer shows a failure
		_ = in.Close()
	}()
	all, err := io.ReadAll(out)
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(string(all)), "\n")
	if len(lines) != 2 || !strings.Contains(lines[1], `late`) {
		t.Errorf("%q, want len(lines) = 2, lines[1] containing \"late\"", lines)
	}
	for _, l := range lines {
		if !json.Valid([]byte(l)) {
			t.Errorf("%q is not of the protocol, want json.Valid([]byte(l)) = true", l)
		}
	}
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

// The end of the context ends what runs.
func TestStdioEnds(t *testing.T) {
	s := newServer(t, Config{})
	_, cancel, in, out, ended := serveStdio(t, s)
	go func() { _, _ = io.WriteString(in, hello+callLine(2, "import time; time.sleep(1000)")) }() // it is over when the pipe is closed
	if _, err := out.ReadString('\n'); err != nil {
		t.Fatal(err)
	}
	go func() { _, _ = io.Copy(io.Discard, out) }() // ends with the pipe
	cancel()
	select {
	case <-ended:
	case <-time.After(30 * time.Second):
		t.Fatal("the server still runs 30 s after its context ended, want it ended")
	}
	if err := s.Close(testContext(t)); err != nil {
		t.Error(err)
	}
}

// Nothing is opened, and nothing asked of the client, before the client has been answered.
func TestInitializeStartsNothing(t *testing.T) {
	s := newServer(t, Config{})
	_, _, in, out, _ := serveStdio(t, s)
	go func() { _, _ = io.WriteString(in, strings.SplitAfter(hello, "\n")[0]) }() // the answer shows a failure
	if l, err := out.ReadString('\n'); err != nil || !strings.Contains(l, `"serverInfo"`) || !strings.Contains(l, `"llm-sandbox"`) {
		t.Fatalf("%q, %v, want no error, l containing \"\\\"serverInfo\\\"\", l containing \"\\\"llm-sandbox\\\"\"", l, err)
	}
	s.sandboxes.mu.Lock()
	defer s.sandboxes.mu.Unlock()
	if s.sandboxes.pool != nil {
		t.Errorf("there is a pool already: pool = %v, want nil", s.sandboxes.pool)
	}
}

// A client that takes no answers any more has its calls killed, whether it may ask for more
// or not.
func TestStdioOutFails(t *testing.T) {
	for _, leaves := range []bool{false, true} {
		s := newServer(t, Config{})
		theirIn, in := io.Pipe()
		out, theirOut := io.Pipe()
		ended := make(chan error, 1)
		go func() { ended <- s.RunStdio(testContext(t), theirIn, theirOut) }()
		go func() { _, _ = io.WriteString(in, hello) }() // the answer shows a failure
		if _, err := bufio.NewReader(out).ReadString('\n'); err != nil {
			t.Fatal(err)
		}
		_ = out.Close() // a pipe's end
		slow := strings.Replace(callLine(2, "import time; time.sleep(1000)"), `"params":{`, `"params":{"_meta":{"progressToken":1},`, 1)
		if _, err := io.WriteString(in, slow); err != nil {
			t.Fatal(err)
		}
		if leaves {
			_ = in.Close() // a pipe's end
		}
		select {
		case err := <-ended:
			if !errors.Is(err, io.ErrClosedPipe) {
				t.Errorf("leaves %v: it ended with %v, want io.ErrClosedPipe", leaves, err)
			}
		case <-time.After(30 * time.Second): // the call's own time is longer
			t.Fatalf("leaves %v: the server still runs after 30 s, want it ended", leaves)
		}
	}
}
