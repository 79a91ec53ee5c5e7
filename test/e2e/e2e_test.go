// Package e2e runs whole sandboxes, as their users do: the conformance suite of
// backend/backendtest on the local backend, and what is the local backend's own. The
// numbers in the tests' names are those of the cases in docs/acceptance.md and
// docs/abuse.md.
package e2e

import (
	"context"
	"os"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/llmsandbox/llmsandbox"
)

// require skips a test that cannot run on this machine, and says why. Where
// everything ought to be there (LLMSANDBOX_REQUIRE=1, as in CI) it fails instead.
func require(t testing.TB, ok bool, why string) {
	t.Helper()
	if ok {
		return
	}
	if os.Getenv("LLMSANDBOX_REQUIRE") == "1" {
		t.Fatalf("cannot run here: %s", why)
	}
	t.Skip(why)
}

func testContext(t testing.TB) context.Context {
	t.Helper()
	require(t, runtime.GOOS == "linux", "the local backend needs Linux")
	ctx, cancel := context.WithTimeout(context.Background(), 3*time.Minute)
	t.Cleanup(cancel)
	return ctx
}

// open opens a sandbox that is closed with the test.
func open(t testing.TB, o llmsandbox.Options) *llmsandbox.Sandbox {
	t.Helper()
	o.BestEffort = true // what must hold is asked for by the test itself
	sb, err := llmsandbox.Open(testContext(t), &o)
	if err != nil {
		t.Fatalf("open: %v", err)
	}
	t.Cleanup(func() {
		if err := sb.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	return sb
}

// run runs code and fails the test when we, not the program, failed.
func run(t testing.TB, sb *llmsandbox.Sandbox, code string, o *llmsandbox.RunOptions) *llmsandbox.Result {
	t.Helper()
	res, err := sb.Run(testContext(t), code, o)
	if err != nil {
		t.Fatalf("run: %v\nresult: %+v", err, res)
	}
	return res
}

// wantExit checks status and exit code.
func wantExit(t testing.TB, res *llmsandbox.Result, code int) {
	t.Helper()
	want := llmsandbox.StatusOK
	if code != 0 {
		want = llmsandbox.StatusError
	}
	if res.Status != want || res.ExitCode != code {
		t.Fatalf("status %s, exit code %v, error %q; want %s and %d\nstdout: %s\nstderr: %s",
			res.Status, res.ExitCode, res.Reason, want, code, clip(res.Stdout), clip(res.Stderr))
	}
}

func wantStdout(t testing.TB, res *llmsandbox.Result, want string) {
	t.Helper()
	if res.Stdout != want {
		t.Fatalf("stdout %q, want %q\nstderr: %s", clip(res.Stdout), want, clip(res.Stderr))
	}
}

func clip(s string) string {
	if len(s) > 2000 {
		return s[:1000] + " ... " + s[len(s)-1000:]
	}
	return strings.ToValidUTF8(s, "?")
}
