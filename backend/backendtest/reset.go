package backendtest

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/llmsandbox/llmsandbox"
)

// traces is what a user leaves in a sandbox: files in every place that can be written to,
// what forbids to be looked at and to be removed, processes that have left their parent.
const traces = `
cd /sandbox && echo secret >file && mkdir -p .hidden/deep sealed && echo secret >sealed/file && chmod 000 sealed
ln -s /etc links && ln sealed-not-there broken 2>/dev/null; ln -s broken broken; mkfifo fifo
echo secret >/tmp/file; [ ! -d /dev/shm ] || echo secret >/dev/shm/file 2>/dev/null
home=$HOME; case $home in /tmp/*) rm -rf "$home" && ln -s /sandbox "$home";; esac
for i in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20; do mkdir -p d/d/d/d && cd d/d/d/d || exit 1; done
cd /sandbox && chmod 777 .
sleep 1000 >/dev/null 2>&1 &
(setsid sh -c 'sleep 2000 & exec sleep 3000' >/dev/null 2>&1 &)
true
`

// look returns what there is in a sandbox, itself left out.
const look = `ls -la /sandbox /tmp "$HOME" /dev/shm 2>/dev/null | sed 's/[A-Z][a-z][a-z] .*:[0-9][0-9]//'; stat -c '%a %u' /sandbox /tmp; env | sort; cat /proc/[0-9]*/comm 2>/dev/null | grep -vxE 'sh|cat|grep|sort|agent.*' | sort`

// acceptance80Reset: nothing that a user has left is there after a reset.
func (s *suite) acceptance80Reset(t *testing.T) {
	sb := s.open(t, llmsandbox.Options{Resettable: true})
	ctx := testContext(t)
	see := func() string {
		t.Helper()
		res, err := sb.Shell(ctx, look, nil)
		if err != nil {
			t.Fatal(err)
		}
		return res.Stdout
	}
	before := see()
	if err := sb.Reset(ctx); errors.Is(err, llmsandbox.ErrUnsupported) {
		t.Skipf("sandboxes of this backend are not reset: %v", err)
	}
	for range 2 {
		res, err := sb.Shell(ctx, traces, &llmsandbox.ExecOptions{KeepChildren: true, Env: map[string]string{"SECRET": "1"}})
		if err != nil || res.Status != llmsandbox.StatusOK {
			t.Fatalf("%+v, %v, want no error, Status = StatusOK", res, err)
		}
		kernel, err := sb.Kernel(ctx, "", plainPython)
		if err != nil {
			t.Fatal(err)
		}
		wantValue(t, kernel, "secret = 1", "")
		run(t, sb, `open("table.csv", "w").write("a,b\n1,2\n")`, nil)
		if see() == before {
			t.Fatalf("after a run that leaves things the sandbox looks as before, want a difference:\n%s", before)
		}
		if err := sb.Reset(ctx); err != nil {
			t.Fatal(err)
		}
		if now := see(); now != before {
			t.Errorf("after the reset:\n%s\nat first:\n%s", now, before)
		}
		if left, _ := sb.Artifacts(); len(left) > 0 {
			t.Errorf("%d artifacts are left, want at most 0", len(left))
		}
		if _, err := kernel.Run(ctx, "secret", nil); !errors.Is(err, llmsandbox.ErrKernelClosed) {
			t.Errorf("the kernel answers %v, want ErrKernelClosed", err)
		}
		wantStdout(t, run(t, sb, `print("works")`, nil), "works\n")
		fresh := openKernel(t, sb, "", plainPython)
		wantValue(t, fresh, "1 + 1", "2")
		if err := fresh.Close(); err != nil {
			t.Error(err)
		}
	}
}

// abuse99Reset: what cannot be made as new, or is not known to be, is not said to be so.
func (s *suite) abuse99Reset(t *testing.T) {
	ctx := testContext(t)
	if err := s.shared(t).Reset(ctx); !errors.Is(err, llmsandbox.ErrInvalid) {
		t.Errorf("a sandbox that was not opened for it: %v, want ErrInvalid", err)
	}
	sb := s.open(t, llmsandbox.Options{Resettable: true})
	if err := sb.Reset(ctx); errors.Is(err, llmsandbox.ErrUnsupported) {
		t.Skipf("sandboxes of this backend are not reset: %v", err)
	}
	const shared = `
import ctypes
libc = ctypes.CDLL(None, use_errno=True)
print(libc.shmget(0x5ec, 4096, 0o600 | %s) >= 0)`
	if res := run(t, sb, fmt.Sprintf(shared, "0o1000"), nil); res.Stdout == "True\n" {
		if err := sb.Reset(ctx); err == nil && run(t, sb, fmt.Sprintf(shared, "0"), nil).Stdout != "False\n" {
			t.Error("shared memory that no process holds has outlived a reset: got no error, want an error")
		}
	}
	if err := sb.Close(); err != nil {
		t.Fatal(err)
	}
	if err := sb.Reset(ctx); !errors.Is(err, llmsandbox.ErrClosed) {
		t.Errorf("a closed sandbox: %v, want ErrClosed", err)
	}
}

// resetNetwork: after a reset there is the network of Open, whatever it was changed to.
func (s *suite) resetNetwork(t *testing.T) {
	ctx := testContext(t)
	h := newHostServers(t)
	sb := s.open(t, llmsandbox.Options{Resettable: true, Network: h.network(t), Env: h.env(t)})
	needs(t, sb, "network")
	if err := sb.Reset(ctx); errors.Is(err, llmsandbox.ErrUnsupported) {
		t.Skipf("sandboxes of this backend are not reset: %v", err)
	}
	try := func() {
		t.Helper()
		res := run(t, sb, pythonNetwork+`print(get(web + "/hello"))`, nil)
		if !strings.HasPrefix(res.Stdout, "hello from web.test") {
			t.Errorf("%s%s, want it to begin with \"hello from web.test\"", res.Stdout, res.Stderr)
		}
		attempted(t, res.Network, "web.test", "http")
	}
	try()
	if err := sb.SetNetwork(ctx, llmsandbox.Network{}); err != nil {
		t.Fatal(err)
	}
	if err := sb.Reset(ctx); err != nil {
		t.Fatal(err)
	}
	try()
}
