package mcp

import (
	"context"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/llmsandbox/llmsandbox/backend"
)

// A cancelled call's program is gone: what it would have written later never comes.
func TestCancelKills(t *testing.T) {
	server := newServer(t, Config{})
	started := make(chan struct{}, 1)
	client := connect(t, server, &sdk.ClientOptions{ProgressNotificationHandler: func(_ context.Context, req *sdk.ProgressNotificationClientRequest) {
		if req.Params.Message == "running" {
			started <- struct{}{}
		}
	}})
	s := open(t, client, args{"language": "bash"})
	ctx, cancel := context.WithCancel(testContext(t))
	var called sync.WaitGroup
	called.Go(func() {
		params := &sdk.CallToolParams{Name: "run_in_session", Arguments: args{"session_id": s.SessionID, "timeout": 100,
			"code": "touch begun; (while sleep 0.01; do date +%N >beat; done) & wait"}}
		params.SetProgressToken("t")
		_, err := client.CallTool(ctx, params)
		if err == nil {
			t.Error("a cancelled call has a result: got no error, want an error")
		}
	})
	<-started
	waitFor(t, client, s.SessionID, "beat")
	cancel()
	called.Wait()
	// The session's own work goes on only when the cell has ended.
	got := decode[outcome](t, use(t, client, "run_in_session", args{"session_id": s.SessionID, "code": "echo free"}))
	if got.Stdout != "free\n" {
		t.Errorf("%+v, want Stdout = \"free\\n\"", got)
	}

	ctx, cancel = context.WithCancel(testContext(t))
	called.Go(func() {
		params := &sdk.CallToolParams{Name: "execute_code", Arguments: args{"code": "while True: pass", "timeout": 100}}
		params.SetProgressToken("u")
		_, _ = client.CallTool(ctx, params) // its end is what is waited for
	})
	<-started
	cancel()
	called.Wait()
	closing, stop := context.WithTimeout(context.Background(), 20*time.Second)
	defer stop()
	if err := server.Close(closing); err != nil { // which waits for calls that go on
		t.Error(err)
	}
}

// waitFor reads a file of a session until it has content.
func waitFor(t *testing.T, client *sdk.ClientSession, id, path string) {
	t.Helper()
	for ctx := testContext(t); ctx.Err() == nil; {
		res := use(t, client, "read_file", args{"session_id": id, "path": path})
		if !res.IsError && decode[fileContent](t, res).Content != "" {
			return
		}
	}
	t.Fatalf("there is no %s, want it made by the program", path)
}

func TestProgress(t *testing.T) {
	var mu sync.Mutex
	var reported []string
	var last float64
	client := connect(t, newServer(t, Config{}), &sdk.ClientOptions{ProgressNotificationHandler: func(_ context.Context, req *sdk.ProgressNotificationClientRequest) {
		mu.Lock()
		defer mu.Unlock()
		if req.Params.Progress <= last || req.Params.ProgressToken != "token" {
			t.Errorf("%+v after %v", req.Params, last)
		}
		last = req.Params.Progress
		reported = append(reported, req.Params.Message)
	}})
	params := &sdk.CallToolParams{Name: "execute_code", Arguments: args{"code": "1"}}
	params.SetProgressToken("token")
	if _, err := client.CallTool(testContext(t), params); err != nil {
		t.Fatal(err)
	}
	execute(t, client, args{"code": "1"}) // which asks for none
	mu.Lock()
	defer mu.Unlock()
	if got := strings.Join(reported, ","); got != "waiting for a sandbox,running" {
		t.Errorf("got = %v, want got = \"waiting for a sandbox,running\"", got)
	}
}

// What a tool prints and how a step fails is told; that it ended well is not.
func TestProgressOfSteps(t *testing.T) {
	p := &progress{steps: make(chan backend.Progress, 16)}
	step := backend.Progress{Stage: "install", Message: "six"}
	printed, done, failed := step, step, step
	printed.Output, done.Done, failed.Done, failed.Error = "Collecting six", true, true, "broken"
	for _, s := range []backend.Progress{step, printed, done, failed} {
		p.tell(s)
	}
	p.close()
	var got []string
	for s := range p.steps {
		got = append(got, stepMessage(s))
	}
	if want := []string{"Installing six", "Collecting six", "Installing six failed: broken"}; !slices.Equal(got, want) {
		t.Errorf("told %q, want %q", got, want)
	}
}
