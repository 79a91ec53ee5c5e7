package e2e

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/llmsandbox/llmsandbox"
	"github.com/llmsandbox/llmsandbox/backend"
	"github.com/llmsandbox/llmsandbox/test/abuse"
)

// plantCanaries puts the canary everywhere outside of the sandbox under test: the
// home of the caller, the host's /tmp, the caller's environment and memory, and the
// files, environment and command lines of another sandbox.
func plantCanaries(t *testing.T) {
	t.Helper()
	home, err := os.UserHomeDir()
	if err != nil {
		t.Fatal(err)
	}
	for _, dir := range []string{home, os.TempDir()} {
		plantFile(t, dir)
	}
	t.Setenv("LLMSANDBOX_E2E_SECRET", abuse.Canary)
	other := open(t, llmsandbox.Options{Env: map[string]string{"SECRET": abuse.Canary}})
	ctx := testContext(t)
	for _, path := range []string{"/sandbox/secret", "/tmp/secret", "/tmp/home/secret"} {
		if err := other.WriteFile(ctx, path, []byte(abuse.Canary), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	res, err := other.Shell(ctx, "cp secret /dev/shm/; sh -c 'sleep 3600; :' "+abuse.Canary+" >/dev/null 2>&1 &",
		&llmsandbox.ExecOptions{KeepChildren: true})
	if err != nil {
		t.Fatal(err)
	}
	wantExit(t, res, 0)
}

// plantFile makes a file that holds the canary and returns its path.
func plantFile(t *testing.T, dir string) string {
	t.Helper()
	f, err := os.CreateTemp(dir, "."+abuse.Canary+"-*")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.Remove(f.Name()); err != nil {
			t.Error(err)
		}
	})
	_, err = f.WriteString(abuse.Canary)
	if err := errors.Join(err, f.Chmod(0o644), f.Close()); err != nil {
		t.Fatal(err)
	}
	return f.Name()
}

// hostTexts are what tells one host and user from others.
func hostTexts() []string {
	var texts []string
	add := func(text string, common ...string) {
		for _, c := range common {
			if text == c {
				return
			}
		}
		if len(text) > 4 { // shorter ones are found by chance
			texts = append(texts, text)
		}
	}
	if name, err := os.Hostname(); err == nil {
		add(name, "sandbox", "localhost", "debian", "ubuntu")
	}
	if home, err := os.UserHomeDir(); err == nil {
		add(home, "/root")
	}
	return texts
}

func control(sb *llmsandbox.Sandbox, name string) backend.Control {
	c, ok := sb.Capabilities().Get(name)
	if !ok {
		return backend.Control{Name: name, Why: "the backend declares nothing of it"}
	}
	return c
}

// needs skips a test whose attack nothing would stop for this user on this machine.
// That is no skip to hide: the reason is what Capabilities tells every caller.
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
		t.Errorf("the sandbox no longer works: %v, %s %s", err, res.Status, res.Stderr)
	}
	if d := time.Since(start); d > 5*time.Second {
		t.Errorf("the sandbox took %v to answer", d)
	}
}

// processes are the command lines of what runs in a sandbox.
func processes(t *testing.T, sb *llmsandbox.Sandbox) []string {
	t.Helper()
	res, err := sb.Shell(testContext(t), `for f in /proc/[0-9]*/cmdline; do tr '\0' ' ' <$f; echo; done 2>/dev/null`, nil)
	if err != nil {
		t.Errorf("list processes: %v", err)
		return nil
	}
	return strings.Split(res.Stdout, "\n")
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
		t.Errorf("the program did not come to its end:\n%s", clip(res.Stdout))
	}
	for line := range strings.Lines(res.Stdout) {
		if strings.Contains(line, "REACHED") || strings.Contains(line, abuse.Canary) {
			t.Errorf("an attack succeeded: %s", line)
		}
	}
}

// wantOnlyPlainFiles checks that what was copied out holds nothing but folders and
// regular files without the canary, and returns their number.
func wantOnlyPlainFiles(t *testing.T, dir string) int {
	t.Helper()
	n := 0
	err := filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		n++
		if !d.Type().IsRegular() {
			t.Errorf("%s is %v", path, d.Type())
			return nil
		}
		data, err := os.ReadFile(path)
		if strings.Contains(string(data), abuse.Canary) {
			t.Errorf("%s holds the canary", path)
		}
		return err
	})
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		t.Error(err)
	}
	return n
}
