//go:build unix

package docs_test

import (
	"bufio"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// fakeMake takes the place of make in scripts/check: a part that passes, one of pytest, one whose tests fail, one that fails
// before there are any, and one that goes on until it is ended, in a process of its own.
const fakeMake = `#!/bin/bash
case $2 in
good) echo 'DONE 3 tests, 1 skipped in 0.1s' ;;
python) echo '======= 1 failed, 5 passed, 2 skipped in 64.10s (0:01:04) =======' ;;
bad)
  cat <<'LOG'
PASS a.TestFine (0.00s)
=== Failed
=== FAIL: a TestOne/case (0.10s)
    one_test.go:7: not what it was

=== FAIL: a TestOne (0.10s)

DONE 4 tests, 2 failures in 0.1s
LOG
  exit 1 ;;
broken) echo 'make: no rule'; exit 2 ;;
endless) sleep 600 & echo begun; wait ;;
esac
`

func check(t *testing.T, lanes ...string) *exec.Cmd {
	t.Helper()
	program := filepath.Join(t.TempDir(), "make")
	if err := os.WriteFile(program, []byte(fakeMake), 0o700); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("bash", append([]string{filepath.Join(root, "scripts", "check")}, lanes...)...)
	cmd.Env = append(os.Environ(), "MAKE="+program, "LOGS=")
	cmd.Stderr = os.Stderr
	return cmd
}

func TestCheckSaysWhatFailed(t *testing.T) {
	out, err := check(t, "good python", "bad broken").Output()
	if err == nil {
		t.Error("it passed: got no error, want an error")
	}
	text := string(out)
	_, end, _ := strings.Cut(text, "\nFAILED bad: ")
	for _, want := range []string{"a.TestOne/case\n", "one_test.go:7: not what it was\n", "\nFAILED broken:\n    make: no rule\n", "\n9 passed, 3 failed, 3 skipped in "} {
		if !strings.Contains(end, want) {
			t.Errorf("got %s, want %q at its end", text, want)
		}
	}
	if strings.Contains(end, "a.TestOne\n") {
		t.Errorf("got %s, want only the case of the test that failed", text)
	}
}

func TestCheckEndsItsLanes(t *testing.T) {
	cmd := check(t, "endless", "good endless")
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	// All that it starts has this open.
	held, hold, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer held.Close()
	cmd.ExtraFiles = []*os.File{hold}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	hold.Close()
	begun := 0
	for lines := bufio.NewScanner(stdout); begun < 2 && lines.Scan(); {
		if lines.Text() == "endless: begun" {
			begun++
		}
	}
	if begun != 2 {
		t.Errorf("got %d lanes that began, want 2", begun)
	}
	if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadAll(held); err != nil { // until the last of them has ended
		t.Fatal(err)
	}
	var exit *exec.ExitError
	if err := cmd.Wait(); !errors.As(err, &exit) || exit.ExitCode() != 128+int(syscall.SIGTERM) {
		t.Errorf("got %v, want exit status %d", err, 128+int(syscall.SIGTERM))
	}
}
