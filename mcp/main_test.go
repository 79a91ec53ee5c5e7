package mcp

import (
	"context"
	"encoding/json"
	"os"
	"reflect"
	"runtime"
	"strings"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// require skips a test that cannot run on this machine, or fails it where everything ought
// to be there.
func require(t testing.TB, ok bool, why string) {
	t.Helper()
	switch {
	case ok:
	case os.Getenv("LLMSANDBOX_REQUIRE") == "1":
		t.Fatalf("cannot run here: %s", why)
	default:
		t.Skip(why)
	}
}

func testContext(t testing.TB) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	t.Cleanup(cancel)
	return ctx
}

// newServer makes a server that is closed with the test.
func newServer(t testing.TB, cfg Config) *Server {
	t.Helper()
	require(t, runtime.GOOS == "linux", "the local backend needs Linux")
	cfg.Sandbox.BestEffort = true
	if cfg.Warm == 0 {
		cfg.Warm = 1
	}
	s, err := New(&cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(testContext(t)); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	return s
}

// connect connects a client of the SDK's to a server, in memory.
func connect(t testing.TB, s *Server, o *sdk.ClientOptions) *sdk.ClientSession {
	t.Helper()
	ours, theirs := sdk.NewInMemoryTransports()
	if _, err := s.mcp.Connect(context.Background(), ours, nil); err != nil {
		t.Fatal(err)
	}
	client, err := sdk.NewClient(&sdk.Implementation{Name: "test"}, o).Connect(testContext(t), theirs, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = client.Close() }) // a test may have closed it
	return client
}

// args are a tool's arguments.
type args = map[string]any

// use calls a tool. A protocol error fails the test.
func use(t testing.TB, client *sdk.ClientSession, name string, in args) *sdk.CallToolResult {
	t.Helper()
	res, err := client.CallTool(testContext(t), &sdk.CallToolParams{Name: name, Arguments: in})
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return res
}

// text is the result's only text.
func text(t testing.TB, res *sdk.CallToolResult) string {
	t.Helper()
	var found []string
	for _, c := range res.Content {
		if c, ok := c.(*sdk.TextContent); ok {
			found = append(found, c.Text)
		}
	}
	if len(found) != 1 {
		t.Fatalf("%d texts in %+v, want 1", len(found), res.Content)
	}
	return found[0]
}

// decode reads the result's text, which must be JSON, and is what its structured content
// says.
func decode[T any](t testing.TB, res *sdk.CallToolResult) T {
	t.Helper()
	var out T
	if structured, ok := res.StructuredContent.(map[string]any); ok && text(t, res)[0] == '{' {
		var same map[string]any
		if err := json.Unmarshal([]byte(text(t, res)), &same); err != nil || !reflect.DeepEqual(same, structured) {
			t.Fatalf("text %s, structured content %v: want the same", text(t, res), structured)
		}
	}
	if err := json.Unmarshal([]byte(text(t, res)), &out); err != nil {
		t.Fatalf("%v: %s", err, text(t, res))
	}
	return out
}

// execute runs code with execute_code and fails the test where that is our failure.
func execute(t testing.TB, client *sdk.ClientSession, in args) (*sdk.CallToolResult, outcome) {
	t.Helper()
	res := use(t, client, "execute_code", in)
	out := decode[outcome](t, res)
	if res.IsError {
		t.Fatalf("%+v, want IsError false", out)
	}
	return res, out
}

// exit is an outcome's exit code, and -1 where it has none.
func (o outcome) exit() int {
	if o.ExitCode == nil {
		return -1
	}
	return *o.ExitCode
}

// open opens a session.
func open(t testing.TB, client *sdk.ClientSession, in args) created {
	t.Helper()
	res := use(t, client, "create_session", in)
	if res.IsError {
		t.Fatalf("text(t, res) = %v, want IsError false", text(t, res))
	}
	return decode[created](t, res)
}

// failure is the text of a result that must be an error.
func failure(t testing.TB, res *sdk.CallToolResult) string {
	t.Helper()
	if !res.IsError {
		t.Fatalf("no error: %s, want IsError true", text(t, res))
	}
	return text(t, res)
}

func wantHas(t testing.TB, s string, parts ...string) {
	t.Helper()
	for _, p := range parts {
		if !strings.Contains(s, p) {
			t.Errorf("%q is not in %q", p, s)
		}
	}
}
