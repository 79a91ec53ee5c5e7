//go:build linux

package files_test

import (
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"go.uber.org/goleak"
	"golang.org/x/sys/unix"

	"github.com/llmsandbox/llmsandbox/internal/guest/files"
)

// walkEnv makes the tests run as on a kernel without openat2.
const walkEnv = "LLMSANDBOX_TEST_WITHOUT_OPENAT2"

func TestMain(m *testing.M) {
	if os.Getenv(walkEnv) != "" {
		files.WithoutOpenat2()
	}
	goleak.VerifyTestMain(m)
}

// TestWithoutOpenat2 runs all tests of the package again, on what stands in for openat2.
func TestWithoutOpenat2(t *testing.T) {
	if os.Getenv(walkEnv) != "" {
		t.Skip("this is that run")
	}
	t.Parallel()
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.skip=^TestWithoutOpenat2$", "-test.timeout=10m", "-test.v")
	cmd.Env = append(os.Environ(), walkEnv+"=1")
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	if !strings.Contains(string(out), "--- PASS: TestSwappedLinks") {
		t.Fatalf("the tests were not run, want out containing \"--- PASS: TestSwappedLinks\":\n%s", out)
	}
}

const nobody = 65534 // the usual uid of that user

// asOrdinaryUser lets the service reach only what the user nobody may, as it is
// in a sandbox, where the code's uid decides; root belongs to the user nobody.
func asOrdinaryUser(t *testing.T, root string) {
	t.Helper()
	if os.Getuid() != 0 {
		return
	}
	set := func(uid uintptr) syscall.Errno {
		_, _, errno := syscall.AllThreadsSyscall(unix.SYS_SETFSUID, uid, 0, 0)
		return errno
	}
	if errno := set(nobody); errno != 0 {
		t.Skip("root may write anywhere, and the race detector's build cannot give that up: run it as an ordinary user")
	}
	set(0)
	for _, dir := range []string{root, root + "/sandbox"} {
		if err := os.Chown(dir, nobody, nobody); err != nil {
			t.Fatal(err)
		}
	}
	// The directories that t.TempDir makes around it are closed to others.
	for _, dir := range []string{root + "/..", root + "/../.."} {
		info, err := os.Stat(dir)
		if err == nil && info.Mode()&0o5 == 0 { // not the one above these, which is everybody's
			err = os.Chmod(dir, 0o755)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	set(nobody)
	t.Cleanup(func() { set(0) })
}
