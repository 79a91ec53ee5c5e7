//go:build linux

package engine

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/moby/moby/api/types/container"
	"github.com/moby/moby/client"

	"github.com/llmsandbox/llmsandbox"
	"github.com/llmsandbox/llmsandbox/backend"
	"github.com/llmsandbox/llmsandbox/backend/engine"
	"github.com/llmsandbox/llmsandbox/internal/testengine"
	"github.com/llmsandbox/llmsandbox/internal/testfaults"
	"github.com/llmsandbox/llmsandbox/internal/testimage"
	"github.com/llmsandbox/llmsandbox/internal/testpackage"
)

// rootState is what there is in a root file system, and what runs.
const rootState = `for d in / /bin /etc /opt /srv /tmp /sandbox /usr /usr/bin /usr/local /usr/local/bin /usr/share /var; do [ ! -d $d ] || for f in $d/* $d/.[!.]*; do [ ! -e "$f" ] || stat -c '%n %f %u %g' "$f"; done; done
wc -c </etc/passwd; cat /etc/passwd; id; cat /proc/[0-9]*/comm | grep -c sleep; env`

// rootTraces is what code leaves in it; what it may not as an ordinary user fails.
const rootTraces = `cd /
echo planted >/tmp/planted; echo planted >/sandbox/planted; mkdir -p /srv/closed /new/dir; echo x >/srv/x
for program in /bin/env /usr/bin/python3 /usr/local/bin/python3 /bin/wc; do [ ! -e $program ] || { rm -f $program; cat /tmp/planted >$program; }; done
echo planted::0:0::/: >>/etc/passwd; rm -rf /opt/* /usr/share/doc; mkdir -m 0 /opt/closed; ln -s / /srv/root
chown 1234:77 /srv /etc/group; chmod 700 /etc; chmod 0 /srv/closed
sleep 907311 >/dev/null 2>&1 &
(setsid sh -c 'sleep 907312 & exec sleep 907313' >/dev/null 2>&1 &)
true
`

// containerOf is the id of a sandbox's container.
func containerOf(t *testing.T, c *client.Client, sb *llmsandbox.Sandbox) string {
	t.Helper()
	res, err := c.ContainerInspect(testfaults.Context(t), "llmsandbox-"+sb.ID(), client.ContainerInspectOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return res.Container.ID
}

// listed is how List tells of a sandbox.
func listed(t *testing.T, b backend.Backend, sb *llmsandbox.Sandbox) string {
	t.Helper()
	list, err := llmsandbox.List(testfaults.Context(t), b)
	if err != nil {
		t.Fatal(err)
	}
	for _, info := range list {
		if info.ID == sb.ID() {
			return strings.Join([]string{info.Image, info.Created.String(), info.Deadline.UTC().String(), info.Owner, info.Labels["a"]}, " ")
		}
	}
	t.Fatalf("sandbox %s is not listed", sb.ID())
	return ""
}

// volumes are the names of an engine's volumes.
func volumes(t *testing.T, c *client.Client) string {
	t.Helper()
	res, err := c.VolumeList(testfaults.Context(t), client.VolumeListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, v := range res.Items {
		names = append(names, v.Name)
	}
	slices.Sort(names)
	return strings.Join(names, " ")
}

// TestResetRoot: whatever code has changed, anywhere, is as it was, and of its container nothing is left.
func TestResetRoot(t *testing.T) {
	onFaultsEngines(t, func(t *testing.T, b *engine.Backend, c *client.Client) {
		for name, o := range map[string]llmsandbox.Options{
			"root":                    {User: "root", WritableRoot: true},
			"root, read-only":         {User: "root"},
			"another user":            {User: "app", WritableRoot: true},
			"root, working directory": {User: "root", WritableRoot: true, Workdir: "/work/here"},
		} {
			t.Run(name, func(t *testing.T) {
				leakFree(t)
				o.Image, o.Language, o.BestEffort, o.Resettable, o.Lifetime, o.Labels, o.Limits.Disk = faultsImage, "bash", true, true, time.Hour, map[string]string{"a": "label"}, 16<<20
				sb, ctx := openRoot(t, b, o), testfaults.Context(t)
				before, was, id, kept := inside(t, sb, rootState), listed(t, b, sb), containerOf(t, c, sb), volumes(t, c)
				for range 2 {
					res, err := sb.Shell(ctx, rootTraces, &llmsandbox.ExecOptions{KeepChildren: true})
					if err != nil || res.Status != llmsandbox.StatusOK {
						t.Fatalf("%+v, %v, want no error, Status = StatusOK", res, err)
					}
					if err := sb.Reset(ctx); err != nil {
						t.Fatal(err)
					}
					if _, err := c.ContainerInspect(ctx, id, client.ContainerInspectOptions{}); err == nil {
						t.Errorf("container %s is still there", id)
					}
					if now := containerOf(t, c, sb); now == id {
						t.Error("it is the same container")
					} else {
						id = now
					}
					if now := inside(t, sb, rootState); now != before {
						t.Errorf("after the reset:\n%s\nat first:\n%s", now, before)
					}
					if now := listed(t, b, sb); now != was {
						t.Errorf("it is listed as %s, and was as %s", now, was)
					}
					if now := volumes(t, c); now != kept {
						t.Errorf("the engine has the volumes %s, and had %s", now, kept)
					}
				}
				select {
				case <-sb.Done():
					t.Error("the sandbox has ended with a reset")
				default:
				}
				testfaults.Close(t, sb)
				testfaults.AwaitDone(t, sb)
			})
		}
		wantNothing(t, b, c)
	})
}

// TestResetRootImage: it is the image that the sandbox was opened with, also if its name means another one by now; a deadline that another
// handle has set stays, and that handle ends.
func TestResetRootImage(t *testing.T) {
	first, second := testimage.Save(t, "llmsandbox-test/moves:1", testimage.Busybox(t, nil)), testimage.Save(t, "llmsandbox-test/moves:1", only(t, nil))
	onEachEngine(t, func(t *testing.T, e *testengine.Engine) {
		b, c := newBackend(t, e, engine.Options{}), newClient(t, e)
		e.Load(t, first)
		sb, ctx := openRoot(t, b, llmsandbox.Options{Image: "llmsandbox-test/moves:1", Language: "bash", User: "root", WritableRoot: true, BestEffort: true, Resettable: true, Lifetime: time.Hour}), testfaults.Context(t)
		e.Load(t, second)
		other, err := llmsandbox.Attach(ctx, sb.ID(), &llmsandbox.AttachOptions{Backend: b})
		if err != nil {
			t.Fatal(err)
		}
		defer other.Close()
		end := time.Now().Add(5 * time.Hour).Truncate(time.Second)
		if err := other.SetDeadline(ctx, end); err != nil {
			t.Fatal(err)
		}
		for range 2 {
			wantInside(t, sb, "cat /srv/motd; rm /srv/motd", "from the image\n")
			if err := sb.Reset(ctx); err != nil {
				t.Fatal(err)
			}
			if at, set := sb.Deadline(); !set || !at.Equal(end) {
				t.Errorf("the deadline is %v, want %v", at, end)
			}
		}
		testfaults.AwaitDone(t, other) // what it was a handle on is gone
		again, err := llmsandbox.Attach(ctx, sb.ID(), &llmsandbox.AttachOptions{Backend: b})
		if err != nil {
			t.Fatal(err)
		}
		wantInside(t, again, "cat /srv/motd; id -u", "from the image\n0\n")
		testfaults.Close(t, again, sb)
		// An image that was brought for a sandbox stays as long as that does.
		file := testimage.Save(t, "llmsandbox-test/brought:1", only(t, func(c *v1.Config) { c.Env = append(c.Env, "BROUGHT=yes") }))
		brought := openRoot(t, b, llmsandbox.Options{Image: file, Language: "bash", User: "root", WritableRoot: true, BestEffort: true, Resettable: true})
		if err := os.Remove(file); err != nil {
			t.Fatal(err)
		}
		images := func() int {
			t.Helper()
			res, err := c.ImageList(ctx, client.ImageListOptions{Filters: make(client.Filters).Add("reference", "llmsandbox-load:*")})
			if err != nil {
				t.Fatal(err)
			}
			return len(res.Items)
		}
		there := images()
		for range 2 {
			if err := brought.Reset(ctx); err != nil {
				t.Fatal(err)
			}
			wantInside(t, brought, "echo $BROUGHT", "yes\n")
		}
		testfaults.Close(t, brought)
		if now := images(); now != there-1 {
			t.Errorf("%d images that were loaded are there, want %d", now, there-1)
		}
		wantNothing(t, b, c)
	})
}

// TestResetRootPython: libraries and the network are those of Open.
func TestResetRootPython(t *testing.T) {
	dir := t.TempDir()
	testpackage.Wheel(t, dir, "answer", "1.0", map[string]string{"answer.py": "value = 42\n"})
	onEachEngine(t, func(t *testing.T, e *testengine.Engine) {
		e.Images(t)
		b, c := newBackend(t, e, engine.Options{}), newClient(t, e)
		sb, ctx := openRoot(t, b, llmsandbox.Options{Language: "python", User: "root", WritableRoot: true, BestEffort: true, Resettable: true,
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
		wantNothing(t, b, c)
	})
}

// TestResetRootOften leaves one container.
func TestResetRootOften(t *testing.T) {
	onFaultsEngines(t, func(t *testing.T, b *engine.Backend, c *client.Client) {
		leakFree(t)
		sb := openRoot(t, b, llmsandbox.Options{Image: faultsImage, Language: "bash", User: "root", WritableRoot: true, BestEffort: true, Resettable: true})
		for range 20 {
			if err := sb.Reset(testfaults.Context(t)); err != nil {
				t.Fatal(err)
			}
		}
		all, err := (&outside{client: c}).Left(testfaults.Context(t))
		if err != nil || len(all) != 1 {
			t.Errorf("%q, %v, want one container", all, err)
		}
		wantInside(t, sb, "echo works", "works\n")
		testfaults.Close(t, sb)
		wantNothing(t, b, c)
	})
}

// A spoiler has containers made otherwise from now on.
type spoiler func(by func(*container.Config) error)

// TestResetRootFails: what cannot be created again has ended, says so, and leaves nothing.
func TestResetRootFails(t *testing.T) {
	path := testimage.Save(t, faultsImage, testimage.Busybox(t, nil))
	onEachEngine(t, func(t *testing.T, e *testengine.Engine) {
		e.Load(t, path)
		c := newClient(t, e)
		refused := errors.New("refused")
		for name, fails := range map[string]func(b *engine.Backend, sb *llmsandbox.Sandbox, mounted string, spoil spoiler) error{
			"a mount that is gone": func(_ *engine.Backend, sb *llmsandbox.Sandbox, mounted string, _ spoiler) error {
				return errors.Join(os.Remove(mounted), sb.Reset(testfaults.Context(t)))
			},
			"cancelled": func(_ *engine.Backend, sb *llmsandbox.Sandbox, _ string, _ spoiler) error {
				ctx, cancel := context.WithCancel(testfaults.Context(t))
				cancel()
				return sb.Reset(ctx)
			},
			"ended from outside": func(b *engine.Backend, sb *llmsandbox.Sandbox, _ string, _ spoiler) error {
				other, err := llmsandbox.Attach(testfaults.Context(t), sb.ID(), &llmsandbox.AttachOptions{Backend: b})
				if err != nil {
					t.Fatal(err)
				}
				if err := other.Destroy(testfaults.Context(t)); err != nil {
					t.Fatal(err)
				}
				return sb.Reset(testfaults.Context(t))
			},
			"not made": func(_ *engine.Backend, sb *llmsandbox.Sandbox, _ string, spoil spoiler) error {
				spoil(func(*container.Config) error { return refused })
				err := sb.Reset(testfaults.Context(t))
				if !errors.Is(err, refused) {
					t.Errorf("%v, want %v", err, refused)
				}
				return err
			},
			"not started": func(_ *engine.Backend, sb *llmsandbox.Sandbox, _ string, spoil spoiler) error {
				spoil(func(c *container.Config) error { c.Entrypoint[0] = "/no/such"; return nil })
				return sb.Reset(testfaults.Context(t))
			},
		} {
			t.Run(name, func(t *testing.T) {
				leakFree(t)
				change := func(*container.Config) error { return nil }
				b := newBackend(t, e, engine.Options{Raw: func(c *container.Config, _ *container.HostConfig) error { return change(c) }})
				mounted := filepath.Join(t.TempDir(), "mounted")
				if err := os.Mkdir(mounted, 0o755); err != nil {
					t.Fatal(err)
				}
				// A folder of a user that rootless Podman's may pass through.
				for dir := mounted; dir != "/" && dir != os.TempDir(); dir = filepath.Dir(dir) {
					if err := os.Chmod(dir, 0o755); err != nil {
						t.Fatal(err)
					}
				}
				sb := openRoot(t, b, llmsandbox.Options{Image: faultsImage, Language: "bash", User: "root", WritableRoot: true, BestEffort: true, Resettable: true, Mounts: []llmsandbox.Mount{{Source: mounted, Target: "/data"}}})
				if err := fails(b, sb, mounted, func(by func(*container.Config) error) { change = by }); err == nil {
					t.Fatal("the reset succeeds, want an error")
				}
				testfaults.AwaitDone(t, sb)
				if _, err := sb.Shell(testfaults.Context(t), "true", nil); !errors.Is(err, llmsandbox.ErrClosed) {
					t.Errorf("a command afterwards: %v, want ErrClosed", err)
				}
				testfaults.Close(t, sb)
				wantNothing(t, b, c)
			})
		}
	})
}

// TestResetRootEngineStops: the error is the engine's, and when it is back nothing is left.
func TestResetRootEngineStops(t *testing.T) {
	p := privateDocker(t)
	b, _ := privateBackend(t, p, engine.Options{})
	sb := openRoot(t, b, llmsandbox.Options{Image: faultsImage, Language: "bash", User: "root", WritableRoot: true, BestEffort: true, Resettable: true})
	p.Stop(t)
	if err := sb.Reset(testfaults.Context(t)); err == nil {
		t.Error("the reset succeeds without an engine, want an error")
	}
	testfaults.AwaitDone(t, sb)
	p.Start(t)
	b, c := privateBackend(t, p, engine.Options{})
	_ = sb.Close()
	if _, err := b.GC(testfaults.Context(t)); err != nil {
		t.Error(err)
	}
	wantNothing(t, b, c)
}

// TestResetRootOwnerKilled: while an owner lives no other process takes what it makes for garbage, and when it is killed in the middle of a
// reset a collection finds all of it.
func TestResetRootOwnerKilled(t *testing.T) {
	p := privateDocker(t)
	b, c := privateBackend(t, p, engine.Options{})
	reached := make(chan struct{})
	var attached atomic.Int32
	var once sync.Once
	way := newProxy(t, p.Host, func(to io.Writer) io.Writer {
		return &refusing{to: to, refuse: func(request []byte) bool {
			if !bytes.HasPrefix(request, []byte("POST ")) || !bytes.Contains(request, []byte("/attach?")) || attached.Add(1) < 2 {
				return false
			}
			once.Do(func() { close(reached) })
			return true
		}}
	})
	o := testfaults.StartOwner(t, resets+b.Name()+" "+way.Host)
	<-reached
	if found, err := b.GC(testfaults.Context(t)); err != nil || len(found) > 0 {
		t.Errorf("a collection takes %+v, %v, want no error, no found", found, err)
	}
	all, err := (&outside{client: c}).Left(testfaults.Context(t))
	if err != nil || len(all) != 2 {
		t.Errorf("%q, %v, want the new container, and what holds the image", all, err)
	}
	o.Kill(t)
	if found, err := b.GC(testfaults.Context(t)); err != nil || len(found) != 2 {
		t.Errorf("a collection takes %+v, %v, want both", found, err)
	}
	wantNothing(t, b, c)
}

// A refusing writer passes on all until it is to refuse, and nothing from then on.
type refusing struct {
	to      io.Writer
	refuse  func(request []byte) bool
	refused bool
}

func (r *refusing) Write(p []byte) (int, error) {
	if r.refused = r.refused || r.refuse(p); r.refused {
		return len(p), nil
	}
	return r.to.Write(p)
}
