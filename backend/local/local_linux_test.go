package local

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/llmsandbox/llmsandbox/backend"
	"github.com/llmsandbox/llmsandbox/internal/agentproto"
)

// agentBinary is built once from the tree's own sources, so that these tests never
// speak of an embedded agent that is out of date.
var agentBinary string

func TestMain(m *testing.M) { os.Exit(testMain(m)) }

func testMain(m *testing.M) int {
	if name := os.Getenv(childVariable); name != "" {
		return runChild(name)
	}
	if agentBinary = os.Getenv(childAgent); agentBinary != "" {
		return runAll(m)
	}
	dir, err := os.MkdirTemp("", "lsb-agent-")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir)
	if err := os.Chmod(dir, 0o755); err != nil {
		panic(err)
	}
	agentBinary = filepath.Join(dir, "agent")
	build := exec.Command("go", "build", "-ldflags", "-s -w", "-o", agentBinary, "github.com/llmsandbox/llmsandbox/cmd/llmsandbox-agent")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		panic(string(out))
	}
	return runAll(m)
}

// runAll runs the tests and finds the goroutines they left.
func runAll(m *testing.M) int {
	code := m.Run()
	if err := goleak.Find(); err != nil && code == 0 {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return code
}

// unable ends a test that this place cannot run; where it must be able to, it fails.
func unable(t testing.TB, why string) {
	t.Helper()
	if os.Getenv("LLMSANDBOX_REQUIRE") == "1" {
		t.Fatal(why)
	}
	t.Skip(why)
}

func newBackend(t testing.TB) *Backend {
	t.Helper()
	base, err := os.MkdirTemp("/var/tmp", "lsb-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(base) })
	b := New(&Options{StateDir: base + "/state", CacheDir: base + "/cache", agent: agentBinary})
	t.Cleanup(b.sweeping.Wait)
	return b
}

func newID() string {
	var b [8]byte
	rand.Read(b[:])
	return hex.EncodeToString(b[:])
}

func create(t testing.TB, b *Backend, change func(*backend.Spec)) backend.Machine {
	t.Helper()
	spec := backend.Spec{ID: newID(), Limits: backend.Limits{Memory: 512 << 20, CPUs: 1, PIDs: 128, Disk: 64 << 20}}
	if change != nil {
		change(&spec)
	}
	m, err := b.Create(t.Context(), spec)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := m.Close(nil); err != nil {
			t.Error(err)
		}
	})
	return m
}

func connect(ctx context.Context, m backend.Machine) (*agentproto.Conn, error) {
	stream, err := m.Dial(ctx)
	if err != nil {
		return nil, err
	}
	return agentproto.Client(ctx, stream, agentproto.Hello{Version: agentproto.Version})
}

// run executes a program inside and returns its output and how it ended.
func run(t testing.TB, m backend.Machine, argv ...string) (string, agentproto.Exit) {
	t.Helper()
	return start(t, m, &agentproto.StartRequest{Argv: argv, Env: m.Guest().Env, Merge: true})
}

func start(t testing.TB, m backend.Machine, req *agentproto.StartRequest) (string, agentproto.Exit) {
	t.Helper()
	argv := req.Argv
	ctx, cancel := context.WithTimeout(t.Context(), 60*time.Second)
	defer cancel()
	conn, err := connect(ctx, m)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	call, err := conn.Open(agentproto.MethodStart, req)
	if err != nil {
		t.Fatal(err)
	}
	var started agentproto.Started
	if _, err := call.Recv(ctx, &started); err != nil {
		t.Fatalf("%q: %v", argv, err)
	}
	var out bytes.Buffer
	buf := make([]byte, 32<<10)
	for {
		n, err := call.Read(agentproto.ChanOut, buf)
		out.Write(buf[:n])
		if err != nil {
			break
		}
	}
	var exit agentproto.Exit
	if _, err := call.Recv(ctx, &exit); err != nil {
		t.Fatalf("%q: %v", argv, err)
	}
	return out.String(), exit
}

func shell(t testing.TB, m backend.Machine, script string) string {
	t.Helper()
	out, _ := run(t, m, "/bin/sh", "-c", script)
	return out
}
