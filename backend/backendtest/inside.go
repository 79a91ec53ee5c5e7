package backendtest

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/llmsandbox/llmsandbox"
	"github.com/llmsandbox/llmsandbox/backend"
	"github.com/llmsandbox/llmsandbox/test/abuse"
)

func control(sb *llmsandbox.Sandbox, name string) backend.Control {
	c, ok := sb.Capabilities().Get(name)
	if !ok {
		return backend.Control{Name: name, Why: "the backend declares nothing of it"}
	}
	return c
}

// needs skips a test whose attack nothing would stop for this user on this machine.
// That is no skip to hide: the reason is what Capabilities reports to every caller.
func needs(t *testing.T, sb *llmsandbox.Sandbox, names ...string) {
	t.Helper()
	for _, name := range names {
		if c := control(sb, name); !c.Enforced {
			t.Skipf("%s is declared as not enforced: %s", name, c.Why)
		}
	}
}

// answers checks that a sandbox still works, and soon.
func answers(t *testing.T, sb *llmsandbox.Sandbox) {
	t.Helper()
	start := time.Now()
	res, err := sb.Exec(testContext(t), []string{"true"}, nil)
	if err != nil || res.Status != llmsandbox.StatusOK {
		t.Errorf("the sandbox no longer works: %v, %s %s, want no error, Status = StatusOK", err, res.Status, res.Stderr)
	}
	if d := time.Since(start); d > hang {
		t.Errorf("the sandbox took %v to answer, want at most %v", d, hang)
	}
}

// processes are the command lines of what runs in a sandbox.
func processes(t *testing.T, sb *llmsandbox.Sandbox) []string {
	t.Helper()
	all, err := listProcesses(t, sb)
	if err != nil {
		t.Errorf("list processes: %v", err)
	}
	return all
}

// processesIfItLives returns none of a sandbox that ends meanwhile. That must be reported.
func processesIfItLives(t *testing.T, sb *llmsandbox.Sandbox) []string {
	t.Helper()
	all, err := listProcesses(t, sb)
	switch {
	case errors.Is(err, llmsandbox.ErrLost), errors.Is(err, llmsandbox.ErrClosed):
		t.Logf("the sandbox has ended: %v", err)
	case err != nil:
		t.Errorf("list processes: %v", err)
	}
	return all
}

func listProcesses(t *testing.T, sb *llmsandbox.Sandbox) ([]string, error) {
	t.Helper()
	res, err := sb.Shell(testContext(t), `for f in /proc/[0-9]*/cmdline; do tr '\0' ' ' <$f; echo; done 2>/dev/null`, nil)
	if err != nil {
		return nil, err
	}
	return strings.Split(res.Stdout, "\n"), nil
}

// attempts is put before Python programs that attack: each try prints one line.
const attempts = `import errno, os
def attempt(what, f):
    try:
        r = f()
    except OSError as e:
        print(what, errno.errorcode.get(e.errno, str(e)), flush=True)
    else:
        print(what, "REACHED", r, flush=True)
`

// wantNothingReached checks the output of a program that begins with attempts.
func wantNothingReached(t *testing.T, res *llmsandbox.Result) {
	t.Helper()
	wantExit(t, res, 0)
	if !strings.HasSuffix(res.Stdout, "end\n") {
		t.Errorf("the program did not come to its end, want Stdout ending in \"end\\n\":\n%s", clip(res.Stdout))
	}
	for line := range strings.Lines(res.Stdout) {
		if strings.Contains(line, "REACHED") || strings.Contains(line, abuse.Canary) {
			t.Errorf("an attack succeeded: %s, want line without \"REACHED\", line without Canary", line)
		}
	}
}
