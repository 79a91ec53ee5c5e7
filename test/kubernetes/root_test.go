//go:build linux

package kubernetes

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/llmsandbox/llmsandbox"
	"github.com/llmsandbox/llmsandbox/backend/kubernetes"
	"github.com/llmsandbox/llmsandbox/internal/testcluster"
	"github.com/llmsandbox/llmsandbox/internal/testfaults"
	"github.com/llmsandbox/llmsandbox/test/abuse"
)

// openRoot opens a sandbox of o, with a shell if it names no language.
func (p place) openRoot(t *testing.T, b *kubernetes.Backend, o llmsandbox.Options) *llmsandbox.Sandbox {
	t.Helper()
	o.Backend = b
	if o.Language == "" {
		o.Language = "bash"
	}
	o.Image = p.node.Images(t)(o.Language)
	sb, err := llmsandbox.Open(testfaults.Context(t), &o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = sb.Close() })
	return sb
}

func wantInside(t *testing.T, sb *llmsandbox.Sandbox, line, want string) {
	t.Helper()
	res, err := sb.Shell(testfaults.Context(t), line, nil)
	if err != nil || res.Stdout != want {
		t.Errorf("%s\nprints %q, %v, %s\nwant   %q", line, res.Stdout, err, res.Stderr, want)
	}
}

// onBothKernels tests with the node's kernel and with gVisor's, in a namespace that admits root.
func onBothKernels(t *testing.T, test func(t *testing.T, p place, b *kubernetes.Backend)) {
	t.Helper()
	beside(t)
	p := newPlaceOf(t, "baseline")
	for name, class := range map[string]string{"linux": "", "gvisor": testcluster.GVisor} {
		t.Run(name, func(t *testing.T) {
			p.RuntimeClass = class
			b := p.newBackend(t, nil)
			test(t, p, b)
			p.wantNothing(t, b)
		})
	}
}

func TestUser(t *testing.T) {
	onBothKernels(t, func(t *testing.T, p place, b *kubernetes.Backend) {
		for user, want := range map[string]string{"root": "0:0", "0:7": "0:7", "12": "12:0", "65535:65534": "65535:65534"} {
			t.Run(user, func(t *testing.T) {
				sb := p.openRoot(t, b, llmsandbox.Options{User: user, BestEffort: true})
				wantInside(t, sb, `cd /sandbox && echo x >f && echo y >/tmp/f && stat -c %u:%g f /tmp/f; (echo z >/opt/f) 2>/dev/null || echo denied; grep Seccomp: /proc/self/status | tr '\t' ' '`,
					want+"\n"+want+"\ndenied\nSeccomp: 2\n")
				if err := sb.WriteFile(testfaults.Context(t), "by-file", []byte("x")); err != nil {
					t.Error(err)
				}
				wantInside(t, sb, "cd /sandbox && cat by-file && stat -c %u:%g by-file; echo more >>by-file && cat by-file", "x"+want+"\nxmore\n")
				if c, ok := sb.Capabilities().Get("user"); !ok || c.Enforced != !strings.Contains(":"+want+":", ":0:") {
					t.Errorf("control user is %+v, want it enforced unless code is root, or of its group", c)
				}
				testfaults.Close(t, sb)
			})
		}
	})
}

// TestRootCan has root do what root does, with the capabilities that it has and no others.
func TestRootCan(t *testing.T) {
	onBothKernels(t, func(t *testing.T, p place, b *kubernetes.Backend) {
		sb := p.openRoot(t, b, llmsandbox.Options{User: "root", WritableRoot: true, BestEffort: true})
		wantInside(t, sb, `echo $USER; grep -E '^Cap(Prm|Eff|Bnd|Inh):' /proc/self/status | tr '\t' ' '`,
			"root\nCapInh: 0000000000000000\nCapPrm: 00000000800000fb\nCapEff: 00000000800000fb\nCapBnd: 00000000800000fb\n")
		wantInside(t, sb, `for f in /f /etc/f /usr/f /srv/f /new/dir/f; do mkdir -p "$(dirname $f)" && echo "$f" >"$f" && cat "$f"; done; rm /etc/passwd && ls /etc/passwd 2>/dev/null; chown 7:8 /f && stat -c %u:%g /f; chmod 0 /f && cat /f`,
			"/f\n/etc/f\n/usr/f\n/srv/f\n/new/dir/f\n7:8\n/f\n")
		res, err := sb.Exec(testfaults.Context(t), []string{"sh", "-c", "id -u; grep CapEff /proc/self/status; cat /f"}, &llmsandbox.ExecOptions{User: "1234"})
		if err != nil || !strings.HasPrefix(res.Stdout, "1234\nCapEff:\t0000000000000000\n") || strings.Contains(res.Stdout, "/f\n") {
			t.Errorf("exec as another user prints %q, %v, want its uid, no capability, and nothing of root's", res.Stdout, err)
		}
		other := p.openRoot(t, b, llmsandbox.Options{User: "12", WritableRoot: true, BestEffort: true})
		wantInside(t, other, `ls /f /new 2>/dev/null; ls /etc/passwd; grep ^Cap /proc/self/status | grep -v 0000000000000000; (echo x >/usr/f) 2>/dev/null || echo denied`, "/etc/passwd\ndenied\n")
		for _, sb := range []*llmsandbox.Sandbox{sb, other} {
			if c, ok := sb.Capabilities().Get("disk"); !ok || c.Enforced {
				t.Errorf("control disk is %+v, want that it is not enforced", c)
			}
			testfaults.Close(t, sb)
		}
	})
}

// TestRootFillsDisk: what root writes beyond the disk limit ends the sandbox, some time after, as the control disk says.
func TestRootFillsDisk(t *testing.T) {
	onBothKernels(t, func(t *testing.T, p place, b *kubernetes.Backend) { rootFillsDisk(t, p, b) })
}

func rootFillsDisk(t *testing.T, p place, b *kubernetes.Backend) {
	sb := p.openRoot(t, b, llmsandbox.Options{User: "root", WritableRoot: true, BestEffort: true, Limits: llmsandbox.Limits{Disk: 16 << 20}})
	ended := testfaults.Start(t, func(stdout io.Writer) (*llmsandbox.Result, error) {
		return sb.Shell(testfaults.Context(t), "head -c 200000000 /dev/zero >/srv/big && echo written; exec sleep 1000", &llmsandbox.ExecOptions{Stdout: stdout, Timeout: 5 * time.Minute})
	})
	start := time.Now()
	(<-ended).WantLost(t, "ephemeral")
	t.Logf("after %v", time.Since(start))
	testfaults.AwaitDone(t, sb)
	testfaults.Close(t, sb)
}

func TestWorkdir(t *testing.T) {
	onBothKernels(t, func(t *testing.T, p place, b *kubernetes.Backend) {
		for name, o := range map[string]llmsandbox.Options{"read-only": {}, "as root": {User: "root"}, "writable": {User: "root", WritableRoot: true}} {
			t.Run(name, func(t *testing.T) {
				o.Workdir, o.BestEffort, o.Limits.Disk = "/srv/a/project", true, 1<<20
				sb := p.openRoot(t, b, o)
				wantInside(t, sb, `pwd; echo $HOME; echo x >f && ls; ls -d /sandbox/f 2>/dev/null; head -c 3000000 /dev/zero >big 2>/dev/null || echo full`, "/srv/a/project\n/srv/a/project\nf\nfull\n")
				if text, err := sb.ReadFile(testfaults.Context(t), "f"); err != nil || string(text) != "x\n" {
					t.Errorf("%q, %v, want what code has written", text, err)
				}
				other, err := llmsandbox.Attach(testfaults.Context(t), sb.ID(), &llmsandbox.AttachOptions{Backend: b})
				if err != nil {
					t.Fatal(err)
				}
				wantInside(t, other, "pwd; cat f", "/srv/a/project\nx\n")
				testfaults.Close(t, other)
				testfaults.Close(t, sb)
			})
		}
		// A volume hides what the image has.
		sb := p.openRoot(t, b, llmsandbox.Options{Workdir: "/var/lib", BestEffort: true})
		wantInside(t, sb, "pwd; ls -A; echo x >f && cat f", "/var/lib\nx\n")
		testfaults.Close(t, sb)
	})
}

// TestRootForbidden: a namespace that admits no root says so before there is a pod.
func TestRootForbidden(t *testing.T) {
	beside(t)
	p := newPlace(t)
	b := p.newBackend(t, nil)
	for _, o := range []llmsandbox.Options{{User: "root"}, {User: "root", WritableRoot: true}} {
		o.Backend, o.Image, o.Language, o.BestEffort = b, p.node.Images(t)("bash"), "bash", true
		sb, err := llmsandbox.Open(testfaults.Context(t), &o)
		if err == nil {
			_ = sb.Close()
		}
		want := fmt.Sprintf("the namespace %s enforces the Pod Security level restricted", p.Namespace)
		if !errors.Is(err, llmsandbox.ErrUnsupported) || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "enforce=baseline") || strings.Contains(err.Error(), "\n") {
			t.Errorf("%+v: %v, want ErrUnsupported, %q and what to do", o, err, want)
		}
	}
	// All else is admitted.
	sb := p.openRoot(t, b, llmsandbox.Options{User: "12:12", WritableRoot: true, Workdir: "/srv/project", BestEffort: true})
	wantInside(t, sb, "pwd; id -u", "/srv/project\n12\n")
	testfaults.Close(t, sb)
	p.wantNothing(t, b)
}

func TestRootOfExistingPod(t *testing.T) {
	beside(t)
	p := newPlace(t)
	pod := p.foreignPod(t, "theirs", corev1.Container{Name: "main", Command: own})
	b := p.newBackend(t, func(o *kubernetes.Options) { o.Pod = pod.Name })
	const rootOfItsOwn = "an existing pod has its own root file system and user"
	for _, c := range []struct {
		o    llmsandbox.Options
		want string
	}{
		{llmsandbox.Options{User: "root"}, rootOfItsOwn}, {llmsandbox.Options{User: "root", WritableRoot: true}, rootOfItsOwn}, {llmsandbox.Options{Sudo: true}, rootOfItsOwn},
		{llmsandbox.Options{Workdir: "/srv/project"}, "say that those of this directory are to stay (KeepFiles, --keep-files)"},
	} {
		o := c.o
		o.Backend, o.Language = b, "bash"
		sb, err := llmsandbox.Open(testfaults.Context(t), &o)
		if err == nil {
			_ = sb.Close()
		}
		if !errors.Is(err, llmsandbox.ErrInvalid) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%+v: %v, want ErrInvalid, and %q", o, err, c.want)
		}
	}
}

// known is what the root of a pod reaches that is no way out of it: files of the agent that only concern what becomes of the
// sandbox itself, signals that the agent ignores, an owner that no file outside has, and what the kernel tells root of the node, as the control user-namespace says.
var known = []string{
	"a file of a user outside",
	"signal 9 to the agent", "signal 15 to the agent", "signal 3 to the agent", "signal 11 to the agent", "signal 19 to the agent", "signal 1 to the agent", "signal 0 to the agent",
	"write to /proc/1/oom_score_adj", "write to /proc/1/coredump_filter", "write to /proc/1/clear_refs", "write to /proc/1/sched",
	"/proc/kpagecgroup", "/proc/kpagecount", "/proc/kpageflags", "/proc/pagetypeinfo", "/proc/slabinfo", "/proc/vmallocinfo",
}

// fileCapabilities has another user run a program whose file root gives its own capabilities.
const fileCapabilities = `
import os, shutil, struct, subprocess
shutil.copy("/usr/bin/grep", "/tmp/grep")
os.setxattr("/tmp/grep", "security.capability", struct.pack("<5I", 0x02000001, 0x800000fb, 0, 0, 0))
print(subprocess.run(["/tmp/grep", "CapEff", "/proc/self/status"], user=1234, group=1234, extra_groups=[], capture_output=True, text=True).stdout)`

// TestRootCannot tries as root what would reach beyond the sandbox.
func TestRootCannot(t *testing.T) {
	beside(t)
	p := newPlaceOf(t, "baseline")
	b := p.newBackend(t, nil)
	for name, writable := range map[string]bool{"read-only": false, "writable": true} {
		t.Run(name, func(t *testing.T) {
			sb := p.openRoot(t, b, llmsandbox.Options{Language: "python", User: "root", WritableRoot: writable, BestEffort: true, Limits: llmsandbox.Limits{Disk: 32 << 20}})
			if err := sb.WriteFile(testfaults.Context(t), "attacks.py", []byte(abuse.AsRoot)); err != nil {
				t.Fatal(err)
			}
			res, err := sb.Exec(testfaults.Context(t), []string{"python3", "attacks.py"}, nil)
			if err != nil || res.Status != llmsandbox.StatusOK || !strings.HasSuffix(res.Stdout, "end\n") {
				t.Fatalf("%v, status %s: %s", err, res.Status, res.Stderr)
			}
			for line := range strings.Lines(res.Stdout) {
				if what, reached := strings.CutPrefix(strings.TrimSpace(line), "reached: "); reached && !slices.Contains(known, what) {
					t.Errorf("root reaches %s", what)
				}
			}
			// Of a mount that heeds a file's capabilities: those that root has, which are not more than there is.
			res, err = sb.Exec(testfaults.Context(t), []string{"python3", "-c", fileCapabilities}, nil)
			if err != nil || strings.TrimSpace(res.Stdout) != "CapEff:\t0000000000000000" {
				t.Errorf("a program with capabilities prints %q, %v, %s, want that it has none", res.Stdout, err, res.Stderr)
			}
			wantInside(t, sb, "echo still here", "still here\n")
			testfaults.Close(t, sb)
		})
	}
	p.wantNothing(t, b)
}

// TestRootReachesLastMessage is why the disk limit does not hold for root even where the root file system is read-only.
func TestRootReachesLastMessage(t *testing.T) {
	beside(t)
	p := newPlaceOf(t, "baseline")
	sb := p.openRoot(t, p.newBackend(t, nil), llmsandbox.Options{User: "root", BestEffort: true})
	pod, err := p.client.CoreV1().Pods(p.Namespace).Get(testfaults.Context(t), podName(sb.ID()), metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	wantInside(t, sb, "echo x >"+mainContainer(t, pod).TerminationMessagePath+" && echo written", "written\n")
	if c, ok := sb.Capabilities().Get("disk"); !ok || c.Enforced {
		t.Errorf("control disk is %+v, want that it is not enforced", c)
	}
	testfaults.Close(t, sb)
}
