//go:build linux

package engine

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/moby/moby/client"

	"github.com/llmsandbox/llmsandbox"
	"github.com/llmsandbox/llmsandbox/backend/engine"
	"github.com/llmsandbox/llmsandbox/internal/testengine"
	"github.com/llmsandbox/llmsandbox/internal/testfaults"
	"github.com/llmsandbox/llmsandbox/test/abuse"
)

// openRoot opens a sandbox of o, with the image of the tests of faults if it names none.
func openRoot(t *testing.T, b *engine.Backend, o llmsandbox.Options) *llmsandbox.Sandbox {
	t.Helper()
	o.Backend = b
	sb, err := llmsandbox.Open(testfaults.Context(t), &o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = sb.Close() })
	return sb
}

func wantInside(t *testing.T, sb *llmsandbox.Sandbox, line, want string) {
	t.Helper()
	if got := inside(t, sb, line); got != want {
		t.Errorf("%s\nprints %q\nwant   %q", line, got, want)
	}
}

func TestUser(t *testing.T) {
	onFaultsEngines(t, func(t *testing.T, b *engine.Backend, _ *client.Client) {
		for user, want := range map[string]string{"root": "0:0", "0": "0:0", "root:7": "0:7", "app": "1000:1000", "app:root": "1000:0", "12": "12:0", "65535:65534": "65535:65534"} {
			t.Run(user, func(t *testing.T) {
				sb := openRoot(t, b, llmsandbox.Options{Image: faultsImage, Language: "bash", User: user, BestEffort: true})
				wantInside(t, sb, `cd /sandbox && echo x >f && echo y >/tmp/f && stat -c %u:%g f /tmp/f; (echo z >/opt/f) 2>/dev/null || echo denied; grep -E 'NoNewPrivs|Seccomp:' /proc/self/status | tr '\t' ' '`,
					want+"\n"+want+"\ndenied\nNoNewPrivs: 1\nSeccomp: 2\n")
				if err := sb.WriteFile(testfaults.Context(t), "by-file", []byte("x")); err != nil {
					t.Error(err)
				}
				wantInside(t, sb, "cd /sandbox && cat by-file && stat -c %u:%g by-file; echo more >>by-file && cat by-file", "x"+want+"\nxmore\n")
				user := sb.Capabilities()
				if c, ok := user.Get("user"); !ok || c.Enforced != !strings.HasPrefix(want, "0:") {
					t.Errorf("control user is %+v, want it enforced unless code is root", c)
				}
			})
		}
	})
}

// TestRootCan has root do what root does, with the capabilities that it has and no others.
func TestRootCan(t *testing.T) {
	onFaultsEngines(t, func(t *testing.T, b *engine.Backend, _ *client.Client) {
		sb := openRoot(t, b, llmsandbox.Options{Image: faultsImage, Language: "bash", User: "root", WritableRoot: true, BestEffort: true})
		wantInside(t, sb, `grep -E '^(Cap(Prm|Eff|Bnd|Amb|Inh)|NoNewPrivs):' /proc/self/status | tr '\t' ' '`,
			"CapInh: 0000000000000000\nCapPrm: 00000000800000fb\nCapEff: 00000000800000fb\nCapBnd: 00000000800000fb\nCapAmb: 0000000000000000\nNoNewPrivs: 1\n")
		wantInside(t, sb, `for f in /f /etc/f /usr/f /srv/f /new/dir/f; do mkdir -p "$(dirname $f)" && echo "$f" >"$f" && cat "$f"; done; rm /etc/passwd && ls /etc/passwd 2>/dev/null; chown 7:8 /f && stat -c %u:%g /f; chmod 0 /f && cat /f`,
			"/f\n/etc/f\n/usr/f\n/srv/f\n/new/dir/f\n7:8\n/f\n")
		res, err := sb.Exec(testfaults.Context(t), []string{"sh", "-c", "id -u; grep CapEff /proc/self/status; cat /f"}, &llmsandbox.ExecOptions{User: "1234"})
		if err != nil || !strings.HasPrefix(res.Stdout, "1234\nCapEff:\t0000000000000000\n") || strings.Contains(res.Stdout, "/f\n") {
			t.Errorf("exec as another user prints %q, %v, want its uid, no capability, and nothing of root's", res.Stdout, err)
		}
		other := openRoot(t, b, llmsandbox.Options{Image: faultsImage, Language: "bash", User: "app", WritableRoot: true, BestEffort: true})
		wantInside(t, other, `ls /f /new 2>/dev/null; ls /etc/passwd; grep Cap /proc/self/status | grep -v 0000000000000000; (echo x >/usr/f) 2>/dev/null || echo denied`, "/etc/passwd\ndenied\n")
		for _, sb := range []*llmsandbox.Sandbox{sb, other} {
			if c, ok := sb.Capabilities().Get("disk"); !ok || c.Enforced {
				t.Errorf("control disk is %+v, want that it is not enforced", c)
			}
		}
	})
}

func TestWorkdir(t *testing.T) {
	onFaultsEngines(t, func(t *testing.T, b *engine.Backend, _ *client.Client) {
		for name, o := range map[string]llmsandbox.Options{"read-only": {}, "as root": {User: "root"}, "writable": {User: "root", WritableRoot: true}} {
			t.Run(name, func(t *testing.T) {
				o.Image, o.Language, o.Workdir, o.BestEffort, o.Limits.Disk = faultsImage, "bash", "/srv/a/project", true, 1<<20
				sb := openRoot(t, b, o)
				wantInside(t, sb, `pwd; echo $HOME; echo x >f && ls; ls -d /sandbox 2>/dev/null; head -c 3000000 /dev/zero >big 2>/dev/null || echo full`, "/srv/a/project\n/srv/a/project\nf\nfull\n")
				if text, err := sb.ReadFile(testfaults.Context(t), "f"); err != nil || string(text) != "x\n" {
					t.Errorf("%q, %v, want what code has written", text, err)
				}
			})
		}
	})
}

func TestRootRefused(t *testing.T) {
	onFaultsEngines(t, func(t *testing.T, b *engine.Backend, c *client.Client) {
		for _, refused := range []struct {
			o    llmsandbox.Options
			want error
			says string
		}{
			{llmsandbox.Options{Sudo: true}, llmsandbox.ErrUnsupported, "--user root"},
			{llmsandbox.Options{WritableRoot: true}, llmsandbox.ErrUnsupported, "--user root"},
			{llmsandbox.Options{WritableRoot: true, User: "root", Limits: llmsandbox.Limits{Disk: 1 << 20}}, llmsandbox.ErrNotEnforced, "--writable-root"},
			{llmsandbox.Options{Workdir: "/etc/x"}, llmsandbox.ErrInvalid, "/etc"},
			{llmsandbox.Options{Workdir: "/usr/bin"}, llmsandbox.ErrInvalid, "/usr"},
			{llmsandbox.Options{Workdir: "/srv", Image: faultsImage}, llmsandbox.ErrInvalid, "the image has it"},
			{llmsandbox.Options{User: "nosuch"}, llmsandbox.ErrInvalid, "nosuch"},
			{llmsandbox.Options{User: "65536"}, llmsandbox.ErrInvalid, "below 65536"},
			{llmsandbox.Options{User: "root:nosuch"}, llmsandbox.ErrInvalid, "nosuch"},
		} {
			o := refused.o
			o.Backend, o.Image = b, faultsImage
			sb, err := llmsandbox.Open(testfaults.Context(t), &o)
			if err == nil {
				_ = sb.Close()
			}
			if !errors.Is(err, refused.want) || !strings.Contains(err.Error(), refused.says) {
				t.Errorf("%+v: %v, want %v and %q", refused.o, err, refused.want, refused.says)
			}
		}
		wantNothing(t, b, c)
	})
}

// known is what the root of a container reaches that is no way out of it: files of the agent that only concern what becomes of the
// sandbox itself, signals that the agent ignores, and ids that no file outside has.
var known = []string{
	"a file of a user outside", "signal ", "write to /proc/1/oom_score_adj", "write to /proc/1/coredump_filter", "write to /proc/1/clear_refs", "write to /proc/1/sched",
}

// TestRootCannot tries as root what would reach beyond the sandbox.
func TestRootCannot(t *testing.T) {
	onEachEngine(t, func(t *testing.T, e *testengine.Engine) {
		e.Images(t)
		b := newBackend(t, e, engine.Options{})
		for name, writable := range map[string]bool{"read-only": false, "writable": true} {
			t.Run(name, func(t *testing.T) {
				sb := openRoot(t, b, llmsandbox.Options{User: "root", WritableRoot: writable, BestEffort: true, Limits: llmsandbox.Limits{Disk: 32 << 20}})
				if err := sb.WriteFile(testfaults.Context(t), "attacks.py", []byte(abuse.AsRoot)); err != nil {
					t.Fatal(err)
				}
				res, err := sb.Exec(testfaults.Context(t), []string{"python3", "attacks.py"}, nil)
				if err != nil || res.Status != llmsandbox.StatusOK {
					t.Fatalf("%v, status %s: %s", err, res.Status, res.Stderr)
				}
				for line := range strings.Lines(res.Stdout) {
					if line != "end\n" && !slices.ContainsFunc(known, func(k string) bool { return strings.Contains(line, k) }) {
						t.Errorf("root %s", line)
					}
				}
				wantInside(t, sb, "echo still here", "still here\n")
			})
		}
		wantNothing(t, b, newClient(t, e))
	})
}

// TestRootInstalls has root install packages into the system of its container, from where the image gets them, and nothing of it reaches the next one.
func TestRootInstalls(t *testing.T) {
	onEachEngine(t, func(t *testing.T, e *testengine.Engine) {
		e.Images(t)
		b := newBackend(t, e, engine.Options{})
		o := llmsandbox.Options{Language: "python", User: "root", WritableRoot: true, Workdir: "/srv/project", BestEffort: true,
			Network: llmsandbox.Network{Mode: llmsandbox.NetworkAllow, Allow: []string{llmsandbox.PackageHosts}}}
		sb := openRoot(t, b, o)
		wantInside(t, sb, "(apt-get update && DEBIAN_FRONTEND=noninteractive apt-get install -y hello-traditional git) >log 2>&1 || cat log; hello | head -c 5; dpkg -l hello-traditional | grep -c ^ii", "Hello1\n")
		wantInside(t, sb, `git init -q /opt/origin && cd /opt/origin && git -c user.name=a -c user.email=a@b commit -q --allow-empty -m first && cd /srv/project && git clone -q /opt/origin clone && git -C clone log --format=%s`, "first\n")
		wantInside(t, sb, "(useradd -m one && su one -c 'id -un; (echo x >/usr/f) 2>/dev/null'; chown one log && stat -c %U log) 2>&1", "one\none\n")
		wantInside(t, openRoot(t, b, o), "command -v hello git; ls", "")
		wantInside(t, sb, "python3 -m pip install -q --break-system-packages six 2>&1 | grep -i error; cd / && python3 -c 'import six; print(six.__file__.startswith(\"/sandbox\"))'", "False\n")
	})
}
