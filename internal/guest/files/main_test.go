//go:build linux

package files_test

import (
	"os"
	"syscall"
	"testing"

	"go.uber.org/goleak"
	"golang.org/x/sys/unix"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const nobody = 65534

// asOrdinaryUser lets the service reach only what is nobody's or everybody's, as it is
// in a sandbox, where the code's uid decides; root is given to nobody.
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
	// The folders that t.TempDir makes around it are closed to others.
	for _, dir := range []string{root + "/..", root + "/../.."} {
		if err := os.Chmod(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	set(nobody)
	t.Cleanup(func() { set(0) })
}
