package e2e

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"

	"github.com/llmsandbox/llmsandbox"
	"github.com/llmsandbox/llmsandbox/internal/testimage"
	"github.com/llmsandbox/llmsandbox/pool"
)

// rootState is what there is in a root filesystem, and what runs.
const rootState = `find / -maxdepth 3 \( -path /proc -o -path /dev/pts \) -prune -o -exec stat -c '%n %f %u %g %N' {} + | sort
wc -c </etc/passwd; ls -d /usr/share/*/* /opt/* | wc -l; wc -l </usr/bin/env; id; cat /proc/[0-9]*/cmdline | tr '\0' '\n' | grep -x '90731[123]'; env | sort`

// rootTraces is what code may leave in it. What it does with other users fails for a user who is not root.
const rootTraces = `cd /
printf '#!/bin/sh\necho planted\n' >/tmp/planted; chmod 755 /tmp/planted
for program in /usr/bin/env /bin/wc /usr/bin/python3; do rm -f $program; cp /tmp/planted $program; done
echo planted::0:0::/: >>/etc/passwd; for d in /usr/share/*/ /opt; do [ -d $d ] && break; done; rm -rf $d; mkdir $d; echo x >$d/x
mkdir -p /srv/closed/deep /srv/b /new/dir; echo x >/srv/closed/deep/f; chmod 0 /srv/closed/deep /srv/closed
ln -s / /srv/root; ln -s /proc/self/cwd /srv/cwd; ln /etc/group /srv/linked; mkfifo /srv/fifo
echo x >/srv/b/f; chown 1234:77 /srv/b/f /srv/b /usr/local /usr/bin 2>/dev/null; chmod 0 /srv/b
printf x >"/srv/$(printf 'a\nb\001')"; head -c 9000000 /dev/zero >/srv/big
sleep 907311 </srv/big >/dev/null 2>&1 &
rm /srv/big; cd /srv; (setsid sh -c 'sleep 907312 & exec sleep 907313' >/dev/null 2>&1 &)
chmod 700 /etc; chmod 0 /usr/local
true
`

// TestResetRoot: whatever code has changed as any user of the sandbox, anywhere, is as it was.
func TestResetRoot(t *testing.T) {
	b, left := imageBackend(t)
	image := testimage.Layout(t, map[string]v1.Image{"one": testimage.Busybox(t, nil)}) + ":one"
	for name, c := range map[string]struct {
		o  llmsandbox.Options
		as string // what does it
	}{
		"image":                     {o: llmsandbox.Options{Image: image, WritableRoot: true}, as: "sh"},
		"image, root":               {o: llmsandbox.Options{Image: image, WritableRoot: true, User: "root"}, as: "sh"},
		"image, root, read-only":    {o: llmsandbox.Options{Image: image, User: "root"}, as: "sh"},
		"host":                      {o: llmsandbox.Options{WritableRoot: true}, as: "sh"},
		"host, root":                {o: llmsandbox.Options{WritableRoot: true, User: "root"}, as: "sh"},
		"host, sudo":                {o: llmsandbox.Options{WritableRoot: true, Sudo: true}, as: "sudo sh"},
		"host, sudo, read-only":     {o: llmsandbox.Options{Sudo: true}, as: "sudo sh"},
		"host, working directory":   {o: llmsandbox.Options{WritableRoot: true, Workdir: "/srv/b"}, as: "sh"},
		"image, copy of a folder":   {o: llmsandbox.Options{Image: image, WritableRoot: true, Mounts: []llmsandbox.Mount{{Source: t.TempDir(), Target: "/srv/b", Mode: llmsandbox.MountCopyOnWrite}}}, as: "sh"},
		"host, root, imports ahead": {o: llmsandbox.Options{WritableRoot: true, User: "root", Imports: []string{"decimal"}, Language: "python"}, as: "sh"},
	} {
		t.Run(name, func(t *testing.T) {
			if c.o.Image == "" {
				needsRoot(t)
			}
			c.o.Backend, c.o.Resettable, c.o.Limits.Disk, c.o.Lifetime = b, true, 16<<20, time.Hour
			if c.o.Language == "" {
				c.o.Language = "bash"
			}
			sb, ctx := open(t, c.o), testContext(t)
			see := func() string {
				t.Helper()
				res, err := sb.Shell(ctx, rootState, nil)
				if err != nil || res.Stdout == "" {
					t.Fatalf("%v: %s", err, clip(res.Stderr))
				}
				return res.Stdout
			}
			before, listed := see(), listedAs(t, sb, c.o)
			for range 2 {
				res, err := sb.Shell(ctx, c.as+" 2>/dev/null <<'END'\n"+rootTraces+"END\n", &llmsandbox.ExecOptions{KeepChildren: true})
				if err != nil || res.Status != llmsandbox.StatusOK {
					t.Fatalf("%+v, %v, want no error, Status = StatusOK", res, err)
				}
				for len(hostRuns(t, "90731")) == 0 {
					if ctx.Err() != nil {
						t.Fatal("no process is left, want some")
					}
				}
				if err := sb.Reset(ctx); err != nil {
					t.Fatal(err)
				}
				if pids := hostRuns(t, "90731"); len(pids) > 0 {
					t.Errorf("processes %v live on, want none", pids)
				}
				if now := see(); now != before {
					t.Errorf("after the reset it differs: %s", firstDifference(before, now))
				}
				if now := listedAs(t, sb, c.o); now != listed {
					t.Errorf("it is listed as %s, and was as %s", now, listed)
				}
				shellIn(t, sb, "head -c 9000000 /dev/zero >/tmp/big && echo fits; rm /tmp/big", "fits\n")
				if c.o.Imports != nil {
					wantStdout(t, run(t, sb, "import sys; print('decimal' in sys.modules)", nil), "True\n")
				}
			}
			select {
			case <-sb.Done():
				t.Error("the sandbox has ended with a reset")
			default:
			}
			if err := sb.Close(); err != nil {
				t.Error(err)
			}
			select {
			case <-sb.Done():
			default:
				t.Error("the sandbox has not ended when it is closed")
			}
		})
	}
	if names := left(); len(names) != 0 {
		t.Errorf("%v are left, want none", names)
	}
}

// hostRuns are the pids of the host's processes with a text in their arguments.
func hostRuns(t *testing.T, text string) (pids []string) {
	t.Helper()
	lines, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range lines {
		if b, _ := os.ReadFile(line); strings.Contains(string(b), text) && !strings.Contains(string(b), "grep") {
			pids = append(pids, filepath.Base(filepath.Dir(line)))
		}
	}
	return pids
}

// listedAs is how List tells of a sandbox.
func listedAs(t *testing.T, sb *llmsandbox.Sandbox, o llmsandbox.Options) string {
	t.Helper()
	list, err := llmsandbox.List(testContext(t), o.Backend)
	if err != nil {
		t.Fatal(err)
	}
	for _, info := range list {
		if info.ID == sb.ID() {
			return strings.Join([]string{info.Image, info.Created.String(), info.Deadline.UTC().String(), info.Owner}, " ")
		}
	}
	t.Fatalf("sandbox %s is not listed", sb.ID())
	return ""
}

func firstDifference(a, b string) string {
	before, after := strings.Split(a, "\n"), strings.Split(b, "\n")
	for i := range min(len(before), len(after)) {
		if before[i] != after[i] {
			return before[i] + " is now " + after[i]
		}
	}
	return "one goes on after the other"
}

// TestResetRootImage: it is the image that the sandbox was opened with, also if its name means another one by now; a commit is
// the same as before, and a deadline that another handle has set stays.
func TestResetRootImage(t *testing.T) {
	b, _ := imageBackend(t)
	file := testimage.Save(t, "tools:1", testimage.Busybox(t, nil))
	sb := open(t, llmsandbox.Options{Backend: b, Language: "bash", Image: file, WritableRoot: true, Resettable: true, Lifetime: time.Hour})
	ctx := testContext(t)
	dir := t.TempDir()
	commit := func(name string) string {
		t.Helper()
		shellIn(t, sb, "echo x >/etc/x && echo y >/sandbox/y && rm /opt/new && cat motd", "from the image\n")
		res, err := sb.Commit(ctx, filepath.Join(dir, name), nil)
		if err != nil {
			t.Fatal(err)
		}
		return res.ID
	}
	before := commit("before.tar")
	other, err := llmsandbox.Attach(ctx, sb.ID(), &llmsandbox.AttachOptions{Backend: b})
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	end := time.Now().Add(5 * time.Hour).Truncate(time.Second)
	if err := other.SetDeadline(ctx, end); err != nil {
		t.Fatal(err)
	}
	if err := sb.Reset(ctx); err != nil {
		t.Fatal(err)
	}
	if at, set := sb.Deadline(); !set || !at.Equal(end) {
		t.Errorf("the deadline is %v, want %v", at, end)
	}
	if after := commit("after.tar"); after != before {
		t.Errorf("the image is %s, and was %s", after, before)
	}
	select { // what it was a handle on is gone
	case <-other.Done():
	case <-ctx.Done():
		t.Error("the other handle does not end")
	}
	saved, err := os.ReadFile(testimage.Save(t, "tools:1", withFile(t, testimage.Busybox(t, nil), "etc/another")))
	if err == nil {
		err = os.WriteFile(file, saved, 0o644)
	}
	if err != nil {
		t.Fatal(err)
	}
	if err := sb.Reset(ctx); err != nil {
		t.Fatal(err)
	}
	shellIn(t, sb, "ls /etc/x /etc/another 2>/dev/null; cat motd", "from the image\n")
	// What an image brings for the working directory comes again, too.
	committed := open(t, llmsandbox.Options{Backend: b, Language: "bash", Image: filepath.Join(dir, "before.tar"), WritableRoot: true, Resettable: true})
	for range 2 {
		shellIn(t, committed, "cat /etc/x /sandbox/y; ls -A /sandbox; echo other >/sandbox/y; rm /etc/x; echo z >/sandbox/z", "x\ny\ny\n")
		if err := committed.Reset(ctx); err != nil {
			t.Fatal(err)
		}
	}
}

// TestResetRootInPool: a tenant gets its own sandbox again, as new.
func TestResetRootInPool(t *testing.T) {
	b, left := imageBackend(t)
	p, err := pool.New(&pool.Config{Reuse: pool.ReuseTenant, ResetTimeout: time.Minute, Min: 1, Max: 1, Prepare: true,
		Options: llmsandbox.Options{Backend: b, Language: "bash", WritableRoot: true, Image: testimage.Layout(t, map[string]v1.Image{"one": testimage.Busybox(t, nil)}) + ":one"}})
	if err != nil {
		t.Fatal(err)
	}
	ids := map[string]bool{}
	for range 3 {
		l, err := p.Acquire(testContext(t), &pool.AcquireOptions{Tenant: "one"})
		if err != nil {
			t.Fatal(err)
		}
		ids[l.Sandbox().ID()] = true
		shellIn(t, l.Sandbox(), "ls /etc/x 2>/dev/null; echo x >/etc/x; sleep 1000 >/dev/null 2>&1 &", "")
		l.Release()
	}
	if len(ids) != 1 {
		t.Errorf("it got %d sandboxes, want one; the pool's last error is %v", len(ids), p.Stats().LastError)
	}
	if err := p.Close(testContext(t)); err != nil {
		t.Error(err)
	}
	if names := left(); len(names) != 0 {
		t.Errorf("%v are left, want none", names)
	}
}

// TestResetRootFails: what cannot be created again has ended, and says so.
func TestResetRootFails(t *testing.T) {
	b, left := imageBackend(t)
	image := testimage.Layout(t, map[string]v1.Image{"one": testimage.Busybox(t, nil)}) + ":one"
	for name, fails := range map[string]func(sb *llmsandbox.Sandbox, mounted string) error{
		"a mount that is gone": func(sb *llmsandbox.Sandbox, mounted string) error {
			return errors.Join(os.Remove(mounted), sb.Reset(testContext(t)))
		},
		"cancelled": func(sb *llmsandbox.Sandbox, _ string) error {
			ctx, cancel := context.WithCancel(testContext(t))
			cancel()
			return sb.Reset(ctx)
		},
		"ended from outside": func(sb *llmsandbox.Sandbox, _ string) error {
			other, err := llmsandbox.Attach(testContext(t), sb.ID(), &llmsandbox.AttachOptions{Backend: b})
			if err != nil {
				t.Fatal(err)
			}
			if err := other.Destroy(testContext(t)); err != nil {
				t.Fatal(err)
			}
			return sb.Reset(testContext(t))
		},
	} {
		t.Run(name, func(t *testing.T) {
			mounted := filepath.Join(t.TempDir(), "mounted")
			if err := os.Mkdir(mounted, 0o755); err != nil {
				t.Fatal(err)
			}
			sb := open(t, llmsandbox.Options{Backend: b, Language: "bash", Image: image, WritableRoot: true, Resettable: true, Mounts: []llmsandbox.Mount{{Source: mounted, Target: "/data"}}})
			if err := fails(sb, mounted); err == nil {
				t.Error("the reset succeeds, want an error")
			}
			select {
			case <-sb.Done():
			case <-testContext(t).Done():
				t.Error("the sandbox has not ended")
			}
			if _, err := sb.Shell(testContext(t), "true", nil); !errors.Is(err, llmsandbox.ErrClosed) {
				t.Errorf("a command afterwards: %v, want ErrClosed", err)
			}
			if err := sb.Close(); err != nil {
				t.Error(err)
			}
		})
	}
	if names := left(); len(names) != 0 {
		t.Errorf("%v are left, want none", names)
	}
}

// TestResetRootSupervised: a handle stays one when it has its supervisor create the sandbox again.
func TestResetRootSupervised(t *testing.T) {
	needsRoot(t)
	ctx := testContext(t)
	sb, err := llmsandbox.Open(ctx, &llmsandbox.Options{Supervisor: supervised(t), Resettable: true, WritableRoot: true, User: "root", Language: "bash", Lifetime: time.Hour, BestEffort: true})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := sb.Destroy(ctx); err != nil {
			t.Error(err)
		}
	}()
	for range 2 {
		shellIn(t, sb, "ls /etc/x 2>/dev/null; echo x >/etc/x; sleep 1000 >/dev/null 2>&1 & ", "")
		if err := sb.Reset(ctx); err != nil {
			t.Fatal(err)
		}
		shellIn(t, sb, "ls /etc/x 2>/dev/null; id -u", "0\n")
		again, err := llmsandbox.Attach(ctx, sb.ID(), nil)
		if err != nil {
			t.Fatal(err)
		}
		shellIn(t, again, "id -u", "0\n")
		if err := again.Close(); err != nil {
			t.Error(err)
		}
	}
}
