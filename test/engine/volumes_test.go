//go:build linux

package engine

import (
	"errors"
	"strings"
	"sync"
	"testing"

	"github.com/moby/moby/api/types/container"
	"github.com/moby/moby/api/types/mount"
	"github.com/moby/moby/client"

	"github.com/llmsandbox/llmsandbox"
	"github.com/llmsandbox/llmsandbox/backend"
	"github.com/llmsandbox/llmsandbox/backend/engine"
	"github.com/llmsandbox/llmsandbox/internal/testfaults"
)

// newVolumes makes volumes, of which nothing is left after the test.
func newVolumes(t *testing.T, b *engine.Backend, c *client.Client, names ...string) {
	t.Helper()
	before := volumesNamed(t, c, "llmsandbox-volume_")
	for _, name := range names {
		if _, err := b.CreateVolume(testfaults.Context(t), backend.Volume{Name: name}); err != nil {
			t.Fatal(err)
		}
	}
	t.Cleanup(func() {
		for _, name := range names {
			if err := b.RemoveVolume(testfaults.Context(t), name, false); err != nil && !errors.Is(err, backend.ErrVolumeNotFound) {
				t.Error(err)
			}
		}
		if after := volumesNamed(t, c, "llmsandbox-volume_"); after != before {
			t.Errorf("left: %s, before %s", after, before)
		}
	})
}

// volumesNamed are the engine's volumes whose names have a text.
func volumesNamed(t *testing.T, c *client.Client, text string) string {
	t.Helper()
	var named []string
	for name := range strings.SplitSeq(volumes(t, c), " ") {
		if strings.Contains(name, text) {
			named = append(named, name)
		}
	}
	return strings.Join(named, " ")
}

// openVolume opens a sandbox with a volume at /kept.
func openVolume(t *testing.T, b *engine.Backend, name string, change func(*llmsandbox.Options)) *llmsandbox.Sandbox {
	t.Helper()
	o := llmsandbox.Options{Image: faultsImage, Language: "bash", BestEffort: true, Volumes: []llmsandbox.VolumeMount{{Name: name, Target: "/kept"}}}
	if change != nil {
		change(&o)
	}
	return openRoot(t, b, o)
}

func as(user string) func(*llmsandbox.Options) { return func(o *llmsandbox.Options) { o.User = user } }

// TestVolumeUsers: code of any user can write to a new volume, wherever it is, and nothing in one gives code more than it has.
func TestVolumeUsers(t *testing.T) {
	onFaultsEngines(t, func(t *testing.T, b *engine.Backend, c *client.Client) {
		newVolumes(t, b, c, "one", "two")
		// The image has files there, and the directory is root's.
		there := func(o *llmsandbox.Options) {
			o.Volumes = []llmsandbox.VolumeMount{{Name: "one", Target: "/srv"}, {Name: "two", Target: "/sandbox/deep/two"}}
		}
		sb := openVolume(t, b, "", there)
		wantInside(t, sb, "ls -A /srv; stat -c '%a %u %g' /srv /sandbox/deep/two; echo first >/srv/file; echo x >/sandbox/deep/two/file; cat /srv/file /sandbox/deep/two/file", "777 1000 1000\n777 1000 1000\nfirst\nx\n")
		if b.Name() == "podman" { // Docker has no option for it
			wantInside(t, sb, "grep -cE ' (/srv|/sandbox/deep/two) [^ ]+ [^ ]*nosuid,nodev' /proc/mounts", "2\n")
		}
		other := openVolume(t, b, "one", as("1234:1234"))
		wantInside(t, other, "cat /kept/file; (echo more >>/kept/file) 2>/dev/null || echo denied; echo other >/kept/other; stat -c '%u %g' /kept/other", "first\ndenied\n1234 1234\n")
		root := openVolume(t, b, "one", as("root"))
		wantInside(t, root, "cp /bin/busybox /kept/id; chmod 4755 /kept/id; mkdir -m 0700 /kept/dir; mknod /kept/null c 1 3 2>/dev/null || echo refused; echo more >>/kept/other; cat /kept/other; stat -c '%a %u' /kept/id", "refused\nother\nmore\n4755 0\n")
		wantInside(t, sb, "/srv/id -u; (ls /srv/dir) 2>/dev/null || echo denied; chmod 700 /srv; stat -c %a /srv", "1000\ndenied\n700\n")
		wantInside(t, openVolume(t, b, "one", nil), "stat -c '%a %u' /kept; cat /kept/other", "700 1000\nother\nmore\n")
		wantInside(t, openVolume(t, b, "one", func(o *llmsandbox.Options) { o.Volumes[0].ReadOnly = true }), "(echo x >/kept/new) 2>/dev/null || echo refused; rm -f /kept/file 2>/dev/null; cat /kept/file", "refused\nfirst\n")
		for name, enforced := range map[string]bool{"volumes": true, "volume-size": false} {
			caps := sb.Capabilities()
			if c, there := caps.Get(name); !there || c.Enforced != enforced {
				t.Errorf("the control %s is %+v, want that it is there and Enforced = %t", name, c, enforced)
			}
		}
		list, err := b.List(testfaults.Context(t))
		if err != nil {
			t.Fatal(err)
		}
		for _, i := range list {
			if i.ID == sb.ID() && (len(i.Volumes) != 2 || i.Volumes[0] != llmsandbox.VolumeMount{Name: "one", Target: "/srv"}) {
				t.Errorf("the list has volumes %+v of it, want both", i.Volumes)
			}
		}
		attached, err := b.Attach(testfaults.Context(t), sb.ID())
		if err != nil {
			t.Fatal(err)
		}
		defer attached.Close(nil)
		if got := attached.Info().Volumes; len(got) != 2 {
			t.Errorf("who attaches finds volumes %+v, want both", got)
		}
	})
}

// TestVolumesStay: neither the end of a sandbox, nor its reset by another container, nor a collection changes a volume.
func TestVolumesStay(t *testing.T) {
	onFaultsEngines(t, func(t *testing.T, b *engine.Backend, c *client.Client) {
		newVolumes(t, b, c, "stays")
		sb := openVolume(t, b, "stays", func(o *llmsandbox.Options) { o.User, o.WritableRoot, o.Resettable = "root", true, true })
		wantInside(t, sb, "echo kept >/kept/file; echo x >/opt/gone", "")
		if err := sb.Reset(testfaults.Context(t)); err != nil {
			t.Fatal(err)
		}
		wantInside(t, sb, "cat /kept/file; ls /opt/gone 2>/dev/null", "kept\n")
		testfaults.Close(t, sb)
		if _, err := b.GC(testfaults.Context(t)); err != nil {
			t.Error(err)
		}
		wantInside(t, openVolume(t, b, "stays", nil), "cat /kept/file", "kept\n")
	})
}

// TestVolumeRemovedByForce: the sandbox lives on without the files, the name is free, and the end of the sandbox or a collection takes the rest.
func TestVolumeRemovedByForce(t *testing.T) {
	onFaultsEngines(t, func(t *testing.T, b *engine.Backend, c *client.Client) {
		newVolumes(t, b, c, "gone")
		sb := openVolume(t, b, "gone", as("root"))
		wantInside(t, sb, "cd /kept; mkdir -p a/b/c; echo x >a/b/c/file; chown -R 4711 a; chmod 0 a/b; touch .hidden; ln -s /etc link; ls -A", ".hidden\na\nlink\n")
		foreign, err := c.ContainerCreate(testfaults.Context(t), client.ContainerCreateOptions{
			Config: &container.Config{Image: faultsImage}, Name: "theirs",
			HostConfig: &container.HostConfig{NetworkMode: "none", Mounts: []mount.Mount{{Type: mount.TypeVolume, Source: strings.Fields(volumesNamed(t, c, "volume_gone-"))[0], Target: "/theirs"}}},
		})
		if err != nil {
			t.Fatal(err)
		}
		if err := b.RemoveVolume(testfaults.Context(t), "gone", false); !errors.Is(err, backend.ErrVolumeInUse) || !strings.Contains(err.Error(), sb.ID()) || !strings.Contains(err.Error(), "container theirs") {
			t.Errorf("remove: %v, want backend.ErrVolumeInUse with %s and the container", err, sb.ID())
		}
		if err := b.RemoveVolume(testfaults.Context(t), "gone", true); err != nil {
			t.Fatal(err)
		}
		wantInside(t, sb, "ls -A /kept; echo alive", "alive\n")
		if err := b.RemoveVolume(testfaults.Context(t), "gone", true); !errors.Is(err, backend.ErrVolumeNotFound) {
			t.Errorf("remove it again: %v, want backend.ErrVolumeNotFound", err)
		}
		if _, err := b.CreateVolume(testfaults.Context(t), backend.Volume{Name: "gone"}); err != nil {
			t.Error(err)
		}
		next := openVolume(t, b, "gone", nil)
		wantInside(t, next, "ls -A /kept; echo new >/kept/new", "")
		wantInside(t, sb, "ls -A /kept", "")
		testfaults.Close(t, sb)
		if _, err := c.ContainerRemove(testfaults.Context(t), foreign.ID, client.ContainerRemoveOptions{}); err != nil {
			t.Error(err)
		}
		if _, err := b.GC(testfaults.Context(t)); err != nil {
			t.Error(err)
		}
		if all := strings.Fields(volumesNamed(t, c, "volume_gone")); len(all) != 2 {
			t.Errorf("the engine has %q, want the new volume and its mark", all)
		}
		if err := b.RemoveVolume(testfaults.Context(t), "gone", true); err != nil {
			t.Error(err)
		}
		wantInside(t, next, "ls -A /kept; echo more >/kept/more", "")
		testfaults.Close(t, next)
		if all := volumesNamed(t, c, "volume_gone"); all != "" {
			t.Errorf("the engine has %q after the end of the sandbox, want nothing", all)
		}
	})
}

// TestVolumesRefused is what volumes are not made, found or removed for.
func TestVolumesRefused(t *testing.T) {
	onFaultsEngines(t, func(t *testing.T, b *engine.Backend, c *client.Client) {
		newVolumes(t, b, c, "one")
		ctx := testfaults.Context(t)
		for _, name := range []string{"", "A", "-a", "../a", "a/b", "a b", "a\x00", "ä", strings.Repeat("a", 64)} {
			_, cerr := b.CreateVolume(ctx, backend.Volume{Name: name})
			_, oerr := llmsandbox.Open(ctx, &llmsandbox.Options{Backend: b, Image: faultsImage, Volumes: []llmsandbox.VolumeMount{{Name: name, Target: "/kept"}}})
			if !errors.Is(cerr, backend.ErrInvalid) || !errors.Is(oerr, backend.ErrInvalid) {
				t.Errorf("%q: %v and %v, want backend.ErrInvalid", name, cerr, oerr)
			}
			if err := b.RemoveVolume(ctx, name, true); !errors.Is(err, backend.ErrVolumeNotFound) {
				t.Errorf("remove %q: %v, want backend.ErrVolumeNotFound", name, err)
			}
		}
		for want, v := range map[error]backend.Volume{backend.ErrVolumeExists: {Name: "one"}, backend.ErrNotEnforced: {Name: "two", Size: 1 << 20}, backend.ErrInvalid: {Name: "two", Size: -1}} {
			if _, err := b.CreateVolume(ctx, v); !errors.Is(err, want) {
				t.Errorf("%+v: %v, want %v", v, err, want)
			}
		}

		// The engine's volumes of others, also of names that ours could have.
		const theirs = "llmsandbox-volume_theirs"
		for _, labels := range []map[string]string{nil, {"llmsandbox.volume": "x"}} {
			if _, err := c.VolumeCreate(ctx, client.VolumeCreateOptions{Name: theirs, Labels: labels}); err != nil {
				t.Fatal(err)
			}
			list, err := b.ListVolumes(ctx)
			if err != nil || len(list) != 1 || list[0].Name != "one" || list[0].Created.IsZero() {
				t.Errorf("the list is %+v, %v, want one", list, err)
			}
			_, oerr := llmsandbox.Open(ctx, &llmsandbox.Options{Backend: b, Image: faultsImage, Volumes: []llmsandbox.VolumeMount{{Name: "theirs", Target: "/kept"}}})
			for call, err := range map[string]error{"open": oerr, "remove": b.RemoveVolume(ctx, "theirs", true)} {
				if !errors.Is(err, backend.ErrVolumeNotFound) {
					t.Errorf("%s: %v, want backend.ErrVolumeNotFound", call, err)
				}
			}
			if _, err := b.CreateVolume(ctx, backend.Volume{Name: "theirs"}); err == nil || !strings.Contains(err.Error(), theirs+" was not made by this program") {
				t.Errorf("where another program's is: %v, want that it is in the way", err)
			}
			if _, err := b.GC(ctx); err != nil {
				t.Error(err)
			}
			if _, err := c.VolumeRemove(ctx, theirs, client.VolumeRemoveOptions{}); err != nil {
				t.Errorf("another program's volume: %v, want that it is still there", err)
			}
		}

		// It is removed after it was found for a sandbox.
		late, err := backendAt(b.Name()+" "+c.DaemonHost(), engine.Options{Raw: func(*container.Config, *container.HostConfig) error { return b.RemoveVolume(ctx, "one", false) }})
		if err != nil {
			t.Fatal(err)
		}
		_, err = llmsandbox.Open(ctx, &llmsandbox.Options{Backend: late, Image: faultsImage, BestEffort: true, Volumes: []llmsandbox.VolumeMount{{Name: "one", Target: "/kept"}}})
		if !errors.Is(err, backend.ErrVolumeNotFound) {
			t.Errorf("a volume that is removed meanwhile: %v, want backend.ErrVolumeNotFound", err)
		}
		if all := volumesNamed(t, c, "llmsandbox-volume_"); all != "" {
			t.Errorf("left: %s, want nothing", all)
		}

		// Of many who make one, one does.
		var makers sync.WaitGroup
		errs := make(chan error, 4)
		for range cap(errs) {
			makers.Go(func() {
				_, err := b.CreateVolume(ctx, backend.Volume{Name: "one"})
				errs <- err
			})
		}
		makers.Wait()
		close(errs)
		made := 0
		for err := range errs {
			if err == nil {
				made++
			} else if !errors.Is(err, backend.ErrVolumeExists) {
				t.Error(err)
			}
		}
		if made != 1 {
			t.Errorf("%d have made it, want one", made)
		}
	})
}

// TestVolumesOfExisting asks for volumes in a container that is there already.
func TestVolumesOfExisting(t *testing.T) {
	b, err := backendAt("docker unix:///nowhere", engine.Options{Container: "any"})
	if err != nil {
		t.Fatal(err)
	}
	_, cerr := b.CreateVolume(t.Context(), backend.Volume{Name: "one"})
	_, lerr := b.ListVolumes(t.Context())
	_, oerr := llmsandbox.Open(t.Context(), &llmsandbox.Options{Backend: b, Volumes: []llmsandbox.VolumeMount{{Name: "one", Target: "/kept"}}})
	for call, err := range map[string]error{"create": cerr, "list": lerr, "open": oerr, "remove": b.RemoveVolume(t.Context(), "one", true)} {
		if !errors.Is(err, backend.ErrUnsupported) || !strings.Contains(err.Error(), "copy files") {
			t.Errorf("%s: %v, want backend.ErrUnsupported with a remedy", call, err)
		}
	}
}
