//go:build linux

package kubernetes

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/llmsandbox/llmsandbox"
	"github.com/llmsandbox/llmsandbox/backend/kubernetes"
	"github.com/llmsandbox/llmsandbox/internal/testfaults"
	"github.com/llmsandbox/llmsandbox/internal/testpackage"
)

// rootState is what there is in a root file system, and what runs.
const rootState = `cd /; for d in . bin etc opt srv tmp sandbox usr usr/bin usr/local usr/local/bin usr/share var; do stat -c '%n %f %u %g' $d/* $d/.[!.]* 2>/dev/null; done | grep -v '^./proc '
cat /etc/passwd; id; cat /proc/[0-9]*/comm | grep -c sleep; env | grep -v '^HOSTNAME'`

// rootTraces is what root leaves in it.
const rootTraces = `cd /
echo planted >/tmp/planted; echo planted >/sandbox/planted; mkdir -p /srv/closed /new/dir; echo x >/srv/x
for program in /usr/bin/env /usr/bin/python3 /usr/local/bin/python3; do [ ! -e $program ] || { rm -f $program; cat /tmp/planted >$program; }; done
echo planted::0:0::/: >>/etc/passwd; rm -rf /opt/* /usr/share/doc; mkdir -m 0 /opt/closed; ln -s / /srv/root
chown 1234:77 /srv; chmod 700 /etc; chmod 0 /srv/closed
sleep 1000 >/dev/null 2>&1 &
(setsid sh -c 'sleep 1000 & exec sleep 1000' >/dev/null 2>&1 &)
true
`

func (p place) podOf(t *testing.T, sb *llmsandbox.Sandbox) *corev1.Pod {
	t.Helper()
	pod, err := p.client.CoreV1().Pods(p.Namespace).Get(testfaults.Context(t), podName(sb.ID()), metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return pod
}

func listed(t *testing.T, b *kubernetes.Backend, sb *llmsandbox.Sandbox) string {
	t.Helper()
	list, err := llmsandbox.List(testfaults.Context(t), b)
	if err != nil {
		t.Fatal(err)
	}
	for _, info := range list {
		if info.ID == sb.ID() {
			return strings.Join([]string{info.Image, info.Created.UTC().String(), info.Deadline.UTC().String(), info.Owner, info.Labels["a"]}, " ")
		}
	}
	t.Fatalf("sandbox %s is not listed", sb.ID())
	return ""
}

// TestResetRoot: whatever root has changed, anywhere, is as it was, in another pod; a deadline that another handle has set stays, and that handle ends.
func TestResetRoot(t *testing.T) {
	onBothKernels(t, func(t *testing.T, p place, b *kubernetes.Backend) {
		for name, o := range map[string]llmsandbox.Options{
			"root":         {User: "root", WritableRoot: true},
			"another user": {User: "12", WritableRoot: true, Workdir: "/work/here"},
		} {
			t.Run(name, func(t *testing.T) {
				o.BestEffort, o.Resettable, o.Lifetime, o.Labels = true, true, time.Hour, map[string]string{"a": "label"}
				sb, ctx := p.openRoot(t, b, o), testfaults.Context(t)
				see := func() string {
					t.Helper()
					res, err := sb.Shell(ctx, rootState, nil)
					if err != nil || !res.OK() || len(res.Stdout) < 1000 {
						t.Fatalf("%v, %s: %s", err, res.Status, res.Stderr)
					}
					return res.Stdout
				}
				other, err := llmsandbox.Attach(ctx, sb.ID(), &llmsandbox.AttachOptions{Backend: b})
				if err != nil {
					t.Fatal(err)
				}
				defer other.Close()
				if err := other.SetDeadline(ctx, time.Now().Add(5*time.Hour).Truncate(time.Second)); err != nil {
					t.Fatal(err)
				}
				before, was, old := see(), listed(t, b, sb), p.podOf(t, sb)
				for range 2 {
					res, err := sb.Shell(ctx, rootTraces, &llmsandbox.ExecOptions{KeepChildren: true})
					if err != nil || res.Status != llmsandbox.StatusOK {
						t.Fatalf("%+v, %v, want no error, Status = StatusOK", res, err)
					}
					at := time.Now()
					if err := sb.Reset(ctx); err != nil {
						t.Fatal(err)
					}
					t.Logf("reset in %v", time.Since(at))
					now := p.podOf(t, sb)
					if now.UID == old.UID || now.Labels["llmsandbox.dev/owner"] != old.Labels["llmsandbox.dev/owner"] || len(now.OwnerReferences) != 1 || now.OwnerReferences[0].UID != old.OwnerReferences[0].UID {
						t.Errorf("the pod is %s of %v, and was %s of %v", now.UID, now.OwnerReferences, old.UID, old.OwnerReferences)
					}
					if a, b := now.Status.ContainerStatuses[0].ImageID, old.Status.ContainerStatuses[0].ImageID; a != b {
						t.Errorf("the image is %s, and was %s", a, b)
					}
					old = now
					if now := see(); now != before {
						t.Errorf("after the reset:\n%s\nat first:\n%s", now, before)
					}
					if now := listed(t, b, sb); now != was {
						t.Errorf("it is listed as %s, and was as %s", now, was)
					}
				}
				testfaults.AwaitDone(t, other) // what it was a handle on is gone
				again, err := llmsandbox.Attach(ctx, sb.ID(), &llmsandbox.AttachOptions{Backend: b})
				if err != nil {
					t.Fatal(err)
				}
				wantInside(t, again, "echo works", "works\n")
				testfaults.Close(t, again, sb)
			})
		}
	})
}

// TestResetRootPython: libraries and the network are those of Open.
func TestResetRootPython(t *testing.T) {
	beside(t)
	dir := t.TempDir()
	testpackage.Wheel(t, dir, "answer", "1.0", map[string]string{"answer.py": "value = 42\n"})
	p := newPlaceOf(t, "baseline")
	b := p.newBackend(t, nil)
	sb, ctx := p.openRoot(t, b, llmsandbox.Options{Language: "python", User: "root", WritableRoot: true, BestEffort: true, Resettable: true,
		Libraries: []string{"answer"}, Install: llmsandbox.InstallOptions{Local: dir}, Env: map[string]string{"ASKED": "yes"},
		Network: llmsandbox.Network{Mode: llmsandbox.NetworkAllow, Allow: []string{"sandbox.test"}}}), testfaults.Context(t)
	var before string
	for i := range 3 {
		res, err := sb.Run(ctx, `import answer, os, urllib.request
def get(url):
    try: return urllib.request.urlopen(url, timeout=20).status
    except Exception as e: return getattr(e, "code", type(e).__name__)
print(answer.value, os.environ["ASKED"], os.getuid(), os.path.exists("/srv/x"), get("http://other.test/"))`, nil)
		if err != nil || !res.OK() || !strings.HasPrefix(res.Stdout, "42 yes 0 False ") || i > 0 && res.Stdout != before {
			t.Fatalf("%+v, %v, want as before: %s", res, err, before)
		}
		if len(res.Network) != 1 || res.Network[0].Name != "other.test" || res.Network[0].Allowed {
			t.Errorf("the network's log is %+v, want that other.test is refused", res.Network)
		}
		before = res.Stdout
		if err := sb.SetNetwork(ctx, llmsandbox.Network{}); err != nil {
			t.Fatal(err)
		}
		wantInside(t, sb, `p=$(command -v python3); rm "$p" && echo "echo planted" >"$p" && chmod 755 "$p" && echo x >/srv/x; sleep 1000 >/dev/null 2>&1 &`, "")
		if err := sb.Reset(ctx); err != nil {
			t.Fatal(err)
		}
	}
	testfaults.Close(t, sb)
	p.wantNothing(t, b)
}

// TestResetRootOften leaves one pod, beside a sandbox that keeps the watch going.
func TestResetRootOften(t *testing.T) {
	beside(t)
	p := newPlaceOf(t, "baseline")
	b := p.newBackend(t, nil)
	o := llmsandbox.Options{User: "root", WritableRoot: true, BestEffort: true, Resettable: true}
	living, sb := p.openRoot(t, b, o), p.openRoot(t, b, o)
	for range 20 {
		if err := sb.Reset(testfaults.Context(t)); err != nil {
			t.Fatal(err)
		}
	}
	pods, err := p.client.CoreV1().Pods(p.Namespace).List(testfaults.Context(t), metav1.ListOptions{})
	if err != nil || len(pods.Items) != 2 {
		t.Errorf("%d pods, %v, want two", len(pods.Items), err)
	}
	if found, err := p.newBackend(t, nil).GC(testfaults.Context(t)); err != nil || len(found) > 0 {
		t.Errorf("a collection takes %+v, %v, want no error, no found", found, err)
	}
	for _, sb := range []*llmsandbox.Sandbox{living, sb} {
		wantInside(t, sb, "echo works", "works\n")
		testfaults.Close(t, sb)
	}
	p.wantNothing(t, b)
}

// spoiled hands on pods that it has made otherwise, once it is to.
type spoiled struct {
	pods func(ctx context.Context, pod *corev1.Pod) (*corev1.Pod, error)
	by   atomic.Pointer[func(pod *corev1.Pod) error]
}

func (s *spoiled) Obtain(ctx context.Context, pod *corev1.Pod) (*corev1.Pod, error) {
	if by := s.by.Load(); by != nil {
		if err := (*by)(pod); err != nil {
			return nil, err
		}
	}
	return s.pods(ctx, pod)
}

// TestResetRootFails: what cannot be created again has ended, says so, and leaves nothing.
func TestResetRootFails(t *testing.T) {
	beside(t)
	p := newPlaceOf(t, "baseline")
	refused := errors.New("refused")
	for name, c := range map[string]struct {
		by   func(pod *corev1.Pod) error
		end  bool // another handle ends it before
		want string
	}{
		"not made":    {by: func(*corev1.Pod) error { return refused }, want: "refused"},
		"not started": {by: func(pod *corev1.Pod) error { pod.Spec.Containers[0].Command = []string{"/no/such"}; return nil }, want: "/no/such"},
		"image gone": {by: func(pod *corev1.Pod) error {
			pod.Spec.Containers[0].Image = "llmsandbox-test/no-such:1"
			pod.Spec.Containers[0].ImagePullPolicy = corev1.PullNever
			return nil
		}, want: "no-such"},
		"other image":  {by: func(pod *corev1.Pod) error { pod.Spec.Containers[0].Image = p.node.Images(t)("python"); return nil }, want: "name the image by its digest"},
		"cancelled":    {want: "canceled"},
		"ended before": {end: true, want: "ended"},
	} {
		t.Run(name, func(t *testing.T) {
			source := &spoiled{pods: func(ctx context.Context, pod *corev1.Pod) (*corev1.Pod, error) {
				return p.client.CoreV1().Pods(p.Namespace).Create(ctx, pod, metav1.CreateOptions{})
			}}
			b := p.newBackend(t, func(o *kubernetes.Options) { o.Source = source })
			sb := p.openRoot(t, b, llmsandbox.Options{User: "root", WritableRoot: true, BestEffort: true, Resettable: true})
			ctx, cancel := context.WithCancel(testfaults.Context(t))
			defer cancel()
			switch {
			case c.by != nil:
				source.by.Store(&c.by)
			case c.end:
				other, err := llmsandbox.Attach(ctx, sb.ID(), &llmsandbox.AttachOptions{Backend: b})
				if err != nil {
					t.Fatal(err)
				}
				if err := other.Destroy(ctx); err != nil {
					t.Fatal(err)
				}
			default:
				cancel()
			}
			if err := sb.Reset(ctx); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%v, want an error with %q", err, c.want)
			}
			testfaults.AwaitDone(t, sb)
			if _, err := sb.Shell(testfaults.Context(t), "true", nil); !errors.Is(err, llmsandbox.ErrClosed) {
				t.Errorf("a command afterwards: %v, want ErrClosed", err)
			}
			testfaults.Close(t, sb)
			p.wantNothing(t, b)
		})
	}
}
