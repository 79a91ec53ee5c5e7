package local

import (
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// spoiled runs another process that opens a sandbox, after script has spoiled the place
// in a mount namespace of its own, where $state and $cache are its directories. It returns
// what the process says, and the backend that sees the same state.
func spoiled(t *testing.T, id, script string, unshare ...string) (string, *Backend) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("only root can spoil a place")
	}
	b := New(&Options{StateDir: filepath.Join(t.TempDir(), "state"), CacheDir: filepath.Join(t.TempDir(), "cache"), agent: agentBinary})
	for _, dir := range []string{b.options.StateDir, b.options.CacheDir} {
		if err := os.Mkdir(dir, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	cmd := exec.Command("unshare", append(append([]string{"-m"}, unshare...), "sh", "-ec", script+"\nexec \"$0\"", os.Args[0])...)
	cmd.Env = append(os.Environ(), "state="+b.options.StateDir, "cache="+b.options.CacheDir, childVariable+"="+id,
		childState+"="+b.options.StateDir, childCache+"="+b.options.CacheDir, childAgent+"="+agentBinary)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		unable(t, "unshare: "+err.Error())
	}
	t.Cleanup(func() { endOwner(t, b, cmd) })
	first := make([]byte, 4096)
	n, err := out.Read(first)
	said := string(first[:n])
	if err == nil && said != "ready\n" {
		rest, _ := io.ReadAll(out)
		said += string(rest)
	}
	return said, b
}

// TestSpoiledPlace is about machines where no sandbox can be: one line says what is
// wrong and what to do.
func TestSpoiledPlace(t *testing.T) {
	for _, c := range []struct {
		name, script string
		unshare      []string
		want         []string
	}{
		{"namespaces forbidden", "echo 0 >/proc/sys/user/max_user_namespaces", []string{"-Ur"},
			[]string{"start a sandbox", "user.max_user_namespaces is 0", "sysctl -w user.max_user_namespaces"}},
		{"state folder full", "mount -t tmpfs -o mode=700,size=4k,nr_inodes=6 none $state", nil,
			[]string{"no space left on device", "state folder"}},
		{"state folder read-only", "mount -t tmpfs -o mode=700,ro none $state", nil,
			[]string{"state folder", "read-only file system", "set LLMSANDBOX_STATE_DIR"}},
		{"cache folder full", "mount -t tmpfs -o mode=700,size=64k none $cache", nil,
			[]string{"toolchains", "no space left on device", "is writable and has space"}},
		{"cache folder read-only", "mount -t tmpfs -o mode=700,ro none $cache", nil,
			[]string{"toolchains", "read-only file system", "is writable and has space"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			said, b := spoiled(t, "spoiled", c.script, c.unshare...)
			if !strings.HasPrefix(said, "error: ") {
				t.Fatalf("it says %q, want it to begin with \"error: \"", said)
			}
			if strings.Count(said, "\n") != 1 {
				t.Errorf("the error is not one line: %s, want strings.Count(said, \"\\n\") = 1", said)
			}
			for _, want := range c.want {
				if !strings.Contains(said, want) {
					t.Errorf("the error does not say %q: %s", want, said)
				}
			}
			if left, err := filepath.Glob(filepath.Join(b.options.StateDir, "sandboxes", "*")); err != nil || len(left) != 0 {
				t.Errorf("%v is left, %v, want no error, no left", left, err)
			}
		})
	}
}

// TestFallback is about what a sandbox can do without, and then says so.
func TestFallback(t *testing.T) {
	mke2fs, err := findMke2fs()
	if err != nil {
		unable(t, err.Error())
	}
	for _, c := range []struct{ name, script, why string }{
		{"no loop devices", "mount --bind /dev/null /dev/loop-control", "loop"},
		{"no mke2fs", "mount --bind /dev/null " + mke2fs, "mke2fs"},
		{"cache on a tmpfs", "mount -t tmpfs -o mode=700 none $cache", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			id := newID()
			said, b := spoiled(t, id, c.script)
			if said != "ready\n" {
				t.Fatalf("it says %q, want \"ready\\n\"", said)
			}
			m, err := b.Attach(t.Context(), id)
			if err != nil {
				t.Fatal(err)
			}
			defer m.Close(nil)
			k, _ := m.Capabilities().Get("disk")
			if c.why != "" && (k.By != "tmpfs" || !strings.Contains(k.Why, c.why)) {
				t.Errorf("disk is %+v, want By = \"tmpfs\", Why containing %q", k, c.why)
			}
			if got := shell(t, m, "head -c 32M /dev/zero >/sandbox/big 2>/dev/null || echo full"); got != "full\n" {
				t.Errorf("its limit of 16 MiB does not hold: %q, want \"full\\n\"", got)
			}
		})
	}
}

// TestRootOfUserNamespace is about a root that is not the machine's, as in a rootless
// container.
func TestRootOfUserNamespace(t *testing.T) {
	id := newID()
	said, b := spoiled(t, id, "id -u >/dev/null", "-Ur")
	if said != "ready\n" {
		t.Fatalf("it says %q, want \"ready\\n\"", said)
	}
	m, err := b.Attach(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close(nil)
	if got := shell(t, m, "id -u; echo x >/sandbox/x && cat /sandbox/x"); got != "1000\nx\n" {
		t.Errorf("prints %q, want \"1000\\nx\\n\"", got)
	}
	if k, _ := m.Capabilities().Get("separate-uid"); k.Enforced {
		t.Errorf("separate-uid is %+v, want Enforced false", k)
	}
}

// TestForkRefused is about a kernel that refuses the namespaces for a reason that no
// setting tells, such as a filter.
func TestForkRefused(t *testing.T) {
	for _, errno := range []unix.Errno{unix.EPERM, unix.ENOSPC, unix.EINVAL, unix.ENOMEM} {
		text := explainFork(errno).Error()
		if !strings.HasPrefix(text, "start a sandbox: "+errno.Error()) || !strings.Contains(text, ": ") || len(text) < 80 {
			t.Errorf("%v is explained as %q, want strings.HasPrefix(text, \"start a sandbox: \"+errno.Error()) = true, text containing \": \", len(text) >= 80", errno, text)
		}
	}
}
