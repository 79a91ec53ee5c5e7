package local

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"golang.org/x/sys/unix"

	"github.com/llmsandbox/llmsandbox/backend"
	"github.com/llmsandbox/llmsandbox/internal/testimage"
)

// newVolumes returns a backend that has volumes of these names.
func newVolumes(t *testing.T, names ...string) *Backend {
	t.Helper()
	b := newBackend(t)
	for _, name := range names {
		if _, err := b.CreateVolume(t.Context(), backend.Volume{Name: name}); err != nil {
			t.Fatal(err)
		}
	}
	return b
}

func withVolumes(volumes ...backend.VolumeMount) func(*backend.Spec) {
	return func(s *backend.Spec) { s.Volumes = volumes }
}

func TestVolumes(t *testing.T) {
	b := newVolumes(t, "a", "b")
	first := create(t, b, withVolumes(backend.VolumeMount{Name: "a", Target: "/data"}, backend.VolumeMount{Name: "b", Target: "/sandbox/deep/b"}))
	second := create(t, b, withVolumes(backend.VolumeMount{Name: "a", Target: "/srv/a"}, backend.VolumeMount{Name: "b", Target: "/b", ReadOnly: true}))
	for _, c := range []struct {
		name         string
		in           backend.Machine
		script, want string
	}{
		{"write", first, "echo one >/data/file; mkdir /data/dir; echo b >/sandbox/deep/b/file; cat /data/file", "one\n"},
		{"read in another", second, "cat /srv/a/file /b/file", "one\nb\n"},
		{"owners", second, "stat -c '%u %g' /srv/a /srv/a/file /b/file | uniq", "1000 1000\n"},
		{"write in another", second, "echo two >>/srv/a/file; rmdir /srv/a/dir; mv /srv/a/file /srv/a/moved; ls /srv/a", "moved\n"},
		{"read what another wrote", first, "cat /data/moved; chmod 600 /data/moved; rm /data/moved; ls /data", "one\ntwo\n"},
		{"read-only", second, "for f in /b/file /b/new; do (echo x >$f) 2>/dev/null && echo $f; done; rm -f /b/file 2>/dev/null; cat /b/file", "b\n"},
		{"no set-user-ID, no devices", first, "grep -E ' (/data|/sandbox/deep/b) ' /proc/self/mounts | cut -d' ' -f4 | grep -c '^rw,nosuid,nodev'", "2\n"},
		{"read-only flags", second, "grep ' /b ' /proc/self/mounts | cut -d' ' -f4 | grep -c '^ro,nosuid,nodev'", "1\n"},
		{"execute", first, "printf '#!/bin/sh\necho runs\n' >/data/run; chmod +x /data/run; /data/run", "runs\n"},
		{"link across", first, "ln /data/run /sandbox/run 2>/dev/null || echo refused", "refused\n"},
	} {
		if got := shell(t, c.in, c.script); got != c.want {
			t.Errorf("%s: %s prints %q, want %q", c.name, c.script, got, c.want)
		}
	}
	if got := first.Info().Volumes; len(got) != 2 || got[0] != (backend.VolumeMount{Name: "a", Target: "/data"}) {
		t.Errorf("Info().Volumes = %+v, want both", got)
	}
	for _, m := range []backend.Machine{first, second} {
		if c, _ := m.Capabilities().Get("volumes"); !c.Enforced || strings.Contains(c.Detail, "state") {
			t.Errorf("the control volumes is %+v, want that it is enforced, without a path of the host", c)
		}
		if c, found := m.Capabilities().Get("volume-size"); c.Enforced != (!found) {
			t.Errorf("the control volume-size is %+v, want that it is not enforced", c)
		}
	}
	third := create(t, b, withVolumes(backend.VolumeMount{Name: "b", Target: "/b", ReadOnly: true}))
	if _, found := third.Capabilities().Get("volume-size"); found {
		t.Error("there is a control volume-size where no volume can be written to")
	}
}

// TestVolumesInImage: an image's user is another one than that of the host's toolchains, and has the files nevertheless.
func TestVolumesInImage(t *testing.T) {
	b := newVolumes(t, "a")
	image := testimage.Layout(t, map[string]v1.Image{"one": testimage.Busybox(t, nil)})
	host := create(t, b, withVolumes(backend.VolumeMount{Name: "a", Target: "/a"}))
	shell(t, host, "echo host >/a/file; chmod 600 /a/file")
	m := create(t, b, func(s *backend.Spec) {
		s.Image, s.Volumes = image+":one", []backend.VolumeMount{{Name: "a", Target: "/srv/a"}}
	})
	if got := shell(t, m, "cat /srv/a/file; echo image >/srv/a/new; chmod 600 /srv/a/new"); got != "host\n" {
		t.Errorf("in an image, code reads %q, want what the other has written", got)
	}
	if got := shell(t, host, "cat /a/new"); got != "image\n" {
		t.Errorf("code reads %q of what was written in an image", got)
	}
	users := func(s *backend.Spec) {
		s.Image, s.User, s.Volumes = image+":one", "root", []backend.VolumeMount{{Name: "a", Target: "/a"}}
	}
	if !privileged() {
		spec := backend.Spec{ID: newID()}
		users(&spec)
		if _, err := b.Create(t.Context(), spec); !errors.Is(err, backend.ErrUnsupported) {
			t.Errorf("as root of the sandbox: %v, want backend.ErrUnsupported", err)
		}
		return
	}
	root := create(t, b, users)
	if got := shell(t, root, "cat /a/file; stat -c '%u %g' /a/file; echo root >/a/root; touch /a/other; chown 33:44 /a/other; stat -c '%u %g' /a/other; chmod 4755 /a/root"); got != "host\n0 0\n33 44\n" {
		t.Errorf("as root of the sandbox, code prints %q", got)
	}
	if got := shell(t, host, "cat /a/root; stat -c '%u %g' /a/root; stat -c %u /a/other"); got != "root\n1000 1000\n65534\n" {
		t.Errorf("code prints %q of what root of another sandbox has written", got)
	}
	// Nothing in the volume belongs to a user that the host has.
	dir, err := b.volumesPath()
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{".", "file", "new", "root", "other"} {
		var st unix.Stat_t
		if err := unix.Lstat(filepath.Join(dir, "a", volumeData, name), &st); err != nil || st.Uid < firstVolumeID || st.Uid > firstVolumeID+1<<16 || st.Gid < firstVolumeID || st.Gid > firstVolumeID+1<<16 {
			t.Errorf("%s belongs to %d:%d on the host, %v, want users of volumes", name, st.Uid, st.Gid, err)
		}
	}
}

func TestVolumeList(t *testing.T) {
	b := newBackend(t)
	if list, err := b.ListVolumes(t.Context()); err != nil || len(list) != 0 {
		t.Fatalf("at first there are %v, %v", list, err)
	}
	before := time.Now()
	made, err := b.CreateVolume(t.Context(), backend.Volume{Name: "b.c_d-1", Labels: map[string]string{"x": "y"}})
	if err != nil || made.Created.Before(before) {
		t.Fatalf("%+v, %v", made, err)
	}
	if _, err := b.CreateVolume(t.Context(), backend.Volume{Name: "a"}); err != nil {
		t.Fatal(err)
	}
	list, err := b.ListVolumes(t.Context())
	if err != nil || len(list) != 2 || list[0].Name != "a" || list[1].Labels["x"] != "y" || !list[1].Created.Equal(made.Created) {
		t.Fatalf("there are %+v, %v, want both", list, err)
	}
	for _, c := range []struct {
		volume backend.Volume
		want   error
	}{
		{backend.Volume{Name: "a"}, backend.ErrVolumeExists},
		{backend.Volume{Name: "c", Size: 1 << 30}, backend.ErrNotEnforced},
		{backend.Volume{Name: "c", Size: -1}, backend.ErrInvalid},
		{backend.Volume{Name: ""}, backend.ErrInvalid},
		{backend.Volume{Name: ".new-1"}, backend.ErrInvalid},
		{backend.Volume{Name: "../a"}, backend.ErrInvalid},
		{backend.Volume{Name: "A"}, backend.ErrInvalid},
		{backend.Volume{Name: strings.Repeat("a", 64)}, backend.ErrInvalid},
		{backend.Volume{Name: "c", Labels: map[string]string{"x": strings.Repeat("y", maxVolumeInfo)}}, backend.ErrInvalid},
	} {
		if _, err := b.CreateVolume(t.Context(), c.volume); !errors.Is(err, c.want) {
			t.Errorf("create %.20q: %v, want %v", c.volume.Name, err, c.want)
		}
	}
	for _, name := range []string{"a", "b.c_d-1"} {
		if err := b.RemoveVolume(t.Context(), name, false); err != nil {
			t.Error(err)
		}
		if err := b.RemoveVolume(t.Context(), name, true); !errors.Is(err, backend.ErrVolumeNotFound) {
			t.Errorf("remove again: %v, want backend.ErrVolumeNotFound", err)
		}
	}
	for _, name := range []string{"../sandboxes", ".", "", "a/../a"} {
		if err := b.RemoveVolume(t.Context(), name, true); !errors.Is(err, backend.ErrVolumeNotFound) {
			t.Errorf("remove %q: %v, want backend.ErrVolumeNotFound", name, err)
		}
	}
	noneLeft(t, b)
}

// noneLeft wants that the directory of volumes is empty.
func noneLeft(t *testing.T, b *Backend) {
	t.Helper()
	dir, err := b.volumesPath()
	if err != nil {
		t.Fatal(err)
	}
	if entries, err := os.ReadDir(dir); err != nil || len(entries) > 0 {
		t.Errorf("there are %v, %v, want none", entries, err)
	}
}

func TestVolumeInUse(t *testing.T) {
	b := newVolumes(t, "a")
	m := create(t, b, withVolumes(backend.VolumeMount{Name: "a", Target: "/a", ReadOnly: true}))
	if err := b.RemoveVolume(t.Context(), "a", false); !errors.Is(err, backend.ErrVolumeInUse) || !strings.Contains(err.Error(), m.ID()) {
		t.Errorf("%v, want backend.ErrVolumeInUse with the sandbox's id", err)
	}
	other, err := b.Attach(t.Context(), m.ID())
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close(nil)
	if err := other.Destroy(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := b.RemoveVolume(t.Context(), "a", false); err != nil {
		t.Errorf("once the sandbox is gone: %v", err)
	}
	if _, err := b.CreateVolume(t.Context(), backend.Volume{Name: "a"}); err != nil {
		t.Fatal(err)
	}
	m = create(t, b, withVolumes(backend.VolumeMount{Name: "a", Target: "/a"}))
	shell(t, m, "echo x >/a/file")
	if err := b.RemoveVolume(t.Context(), "a", true); err != nil {
		t.Errorf("forced: %v", err)
	}
	if got := shell(t, m, "ls /a; (echo x >/a/file) 2>/dev/null || echo gone; echo lives"); got != "gone\nlives\n" {
		t.Errorf("code prints %q, want that the files are gone and the sandbox lives", got)
	}
	spec := backend.Spec{ID: newID(), Volumes: []backend.VolumeMount{{Name: "a", Target: "/a"}}}
	if _, err := b.Create(t.Context(), spec); !errors.Is(err, backend.ErrVolumeNotFound) {
		t.Errorf("a sandbox with a volume that is gone: %v, want backend.ErrVolumeNotFound", err)
	}
	noneLeft(t, b)
}

// TestVolumeHostile: what code has made in a volume hurts neither who removes it nor another sandbox.
func TestVolumeHostile(t *testing.T) {
	b := newVolumes(t, "a")
	outside := filepath.Join(t.TempDir(), "outside")
	if err := os.WriteFile(outside, []byte("kept"), 0o600); err != nil {
		t.Fatal(err)
	}
	m := create(t, b, withVolumes(backend.VolumeMount{Name: "a", Target: "/a"}))
	got := shell(t, m, `cd /a
ln -s `+outside+` file; ln -s / root; ln -s .. up; ln -s ../info info; mkfifo fifo; mknod null c 1 3 2>/dev/null && echo device
cp /bin/sh sh; chmod 4755 sh; mkdir -p shut/in; touch shut/in/file; chmod 0 shut/in shut
touch "$(printf 'a\nb\033[2J')" "$(printf 'x\377')"; touch -- -rf
i=0; while [ $i -lt 600 ]; do mkdir ddddddddddddddddd && cd -P ddddddddddddddddd || exit; i=$((i+1)); done
chmod 0 /a; echo made`)
	if got != "made\n" {
		t.Fatalf("code prints %q, want that there is no device", got)
	}
	if err := m.Destroy(t.Context()); err != nil {
		t.Fatal(err)
	}
	other := create(t, b, withVolumes(backend.VolumeMount{Name: "a", Target: "/a"}))
	if got := shell(t, other, "chmod 700 /a; cat /a/file 2>/dev/null; cat /a/up/info 2>/dev/null; stat -c %A /a/sh; /a/sh -c 'id -u'"); got != "-rwsr-xr-x\n1000\n" {
		t.Errorf("in another sandbox code prints %q", got)
	}
	if err := b.RemoveVolume(t.Context(), "a", true); err != nil {
		t.Errorf("remove: %v", err)
	}
	if text, err := os.ReadFile(outside); err != nil || string(text) != "kept" {
		t.Errorf("a file outside of the volume is %q, %v", text, err)
	}
	noneLeft(t, b)
}

// TestVolumeRaces has a volume made, used and removed by many at the same time.
func TestVolumeRaces(t *testing.T) {
	b := newBackend(t)
	var wg sync.WaitGroup
	var mu sync.Mutex
	made, removed := 0, 0
	for range 4 {
		wg.Go(func() {
			for range 5 {
				_, err := b.CreateVolume(t.Context(), backend.Volume{Name: "a"})
				if err != nil && !errors.Is(err, backend.ErrVolumeExists) {
					t.Errorf("create: %v", err)
				}
				m, uerr := b.Create(t.Context(), backend.Spec{ID: newID(), Volumes: []backend.VolumeMount{{Name: "a", Target: "/a"}}})
				if uerr == nil {
					uerr = m.Close(nil)
				}
				if uerr != nil && !errors.Is(uerr, backend.ErrVolumeNotFound) {
					t.Errorf("use: %v", uerr)
				}
				rerr := b.RemoveVolume(t.Context(), "a", false)
				if rerr != nil && !errors.Is(rerr, backend.ErrVolumeNotFound) && !errors.Is(rerr, backend.ErrVolumeInUse) {
					t.Errorf("remove: %v", rerr)
				}
				mu.Lock()
				if err == nil {
					made++
				}
				if rerr == nil {
					removed++
				}
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	if err := b.RemoveVolume(t.Context(), "a", false); err == nil {
		removed++
	} else if !errors.Is(err, backend.ErrVolumeNotFound) {
		t.Error(err)
	}
	if made == 0 || made != removed {
		t.Errorf("%d volumes were made and %d removed, want as many", made, removed)
	}
	noneLeft(t, b)
}

// TestVolumeGC: a collection leaves volumes alone, and removes what makers and removers have left that died.
func TestVolumeGC(t *testing.T) {
	b := newVolumes(t, "a", "dead", "old", "young")
	m := create(t, b, withVolumes(backend.VolumeMount{Name: "a", Target: "/a"}, backend.VolumeMount{Name: "dead", Target: "/dead"}))
	shell(t, m, "echo kept >/a/file; mkdir /dead/dir; chmod 0 /dead/dir")
	dir, err := b.volumesPath()
	if err != nil {
		t.Fatal(err)
	}
	at := func(name string) string { return filepath.Join(dir, name) }
	long := time.Now().Add(-2 * abandoned)
	err = errors.Join(os.Rename(at("dead"), at(deadVolume+"1")), os.Rename(at("old"), at(newVolume+"1")), os.Rename(at("young"), at(newVolume+"2")), os.Chtimes(at(newVolume+"1"), long, long))
	if err != nil {
		t.Fatal(err)
	}
	left, err := b.GC(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, l := range left {
		if !l.Removed {
			t.Errorf("%+v, want it removed", l)
		}
	}
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) != 2 || entries[0].Name() != newVolume+"2" || entries[1].Name() != "a" {
		t.Errorf("there are %v, %v, want a and what is being made", entries, err)
	}
	if got := shell(t, m, "cat /a/file"); got != "kept\n" {
		t.Errorf("code reads %q", got)
	}
}

func TestVolumesInPlace(t *testing.T) {
	b := New(&Options{StateDir: t.TempDir(), CacheDir: t.TempDir(), Isolation: isolationProcess, agent: agentBinary})
	_, cerr := b.CreateVolume(t.Context(), backend.Volume{Name: "a"})
	_, lerr := b.ListVolumes(t.Context())
	for name, err := range map[string]error{"create": cerr, "list": lerr, "remove": b.RemoveVolume(t.Context(), "a", false)} {
		if !errors.Is(err, backend.ErrUnsupported) || !strings.Contains(err.Error(), "isolation") {
			t.Errorf("%s: %v, want backend.ErrUnsupported that names the isolation", name, err)
		}
	}
}
