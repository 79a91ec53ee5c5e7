package backendtest

import (
	"path"
	"strings"
	"testing"
	"time"

	"github.com/llmsandbox/llmsandbox"
)

// hang is how long nothing takes that does not wait for what never comes. How fast a machine is
// just then decides no test.
const hang = time.Minute

// here has the directories of a text where this sandbox has them.
func here(sb *llmsandbox.Sandbox, text string) string {
	work := sb.Workdir()
	if work == "/sandbox" {
		return text
	}
	return strings.NewReplacer("/sandbox", work, "/tmp", path.Join(path.Dir(work), "tmp")).Replace(text)
}

// run runs code and fails the test when we, not the program, failed.
func run(t testing.TB, sb *llmsandbox.Sandbox, code string, o *llmsandbox.RunOptions) *llmsandbox.Result {
	t.Helper()
	res, err := sb.Run(testContext(t), here(sb, code), o)
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

func wantStatus(t testing.TB, res *llmsandbox.Result, want llmsandbox.Status) {
	t.Helper()
	if res.Status != want {
		t.Fatalf("status %s, exit code %v, signal %s, error %q; want %s\nstdout: %s\nstderr: %s",
			res.Status, res.ExitCode, res.Signal, res.Reason, want, clip(res.Stdout), clip(res.Stderr))
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
