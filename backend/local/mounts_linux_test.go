package local

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"github.com/llmsandbox/llmsandbox/backend"
	"github.com/llmsandbox/llmsandbox/internal/guest/nsinit"
	"github.com/llmsandbox/llmsandbox/internal/hostmount"
	"github.com/llmsandbox/llmsandbox/internal/hostroot"
)

var update = flag.Bool("update", false, "write what is built to testdata")

// testRoot is a root of the host's toolchains that is the same on every machine.
func testRoot(t *testing.T) []mount {
	t.Helper()
	skeleton := t.TempDir()
	for _, dir := range []string{"dev", "etc/ssl", "opt/toolchains/python", "proc", "sandbox", "tmp", "usr"} {
		if err := os.MkdirAll(filepath.Join(skeleton, dir), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink("usr/bin", filepath.Join(skeleton, "bin")); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(skeleton, "etc/passwd"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	root, err := hostMounts(skeleton, []hostroot.Bind{{Source: "/usr", Target: "/usr"}, {Source: "/home/alice/.pyenv/versions/3.11", Target: "/opt/toolchains/python"}})
	if err != nil {
		t.Fatal(err)
	}
	for i := range root {
		root[i].source = strings.Replace(root[i].source, skeleton, "/cache/hostroot-1", 1)
	}
	return root
}

// TestMounts keeps in testdata what a sandbox's file system is made of, and by which calls:
// all of it for the default, what differs from that for others.
func TestMounts(t *testing.T) {
	root, user := rootIdentity("a"), identity{separate: true, helpers: true, insideUID: codeID, insideGID: codeID}
	layers := []backend.Layer{
		{Source: "/cache/layers/numpy", Target: "/tmp/home/libraries/numpy"},
		{Source: "/var/cache/llmsandbox/layers/gcc", Target: "/opt/gcc"},
		{Source: "/cache/layers/go-build", Target: "/tmp/home/.cache/go-build", Writable: true},
	}
	opened := os.Stdin // whatever file it is
	nothing := func(string) bool { return false }
	asked := []hostmount.Source{
		{Mount: backend.Mount{Source: "/home/alice/data", Target: "/sandbox/data", Mode: "ro"}, File: opened, Dir: true},
		{Mount: backend.Mount{Source: "/home/alice/one", Target: "/srv/a/one", Mode: "ro"}, File: opened},
		{Mount: backend.Mount{Source: "/home/alice/src", Target: "/src", Mode: "cow"}, File: opened, Dir: true},
	}
	volumes := []heldVolume{
		{VolumeMount: backend.VolumeMount{Name: "a", Target: "/sandbox/a"}, path: "/state/volumes/a/data", data: opened},
		{VolumeMount: backend.VolumeMount{Name: "b", Target: "/b", ReadOnly: true}, path: "/state/volumes/b/data", data: opened},
		{VolumeMount: backend.VolumeMount{Name: "c", Target: "/new"}, path: "/state/volumes/c/data", data: opened, unowned: true},
	}
	var standard []string
	for _, c := range []struct {
		name     string
		image    bool
		writable bool // the root
		workdir  string
		identity identity
		layers   []backend.Layer
		asked    []hostmount.Source
		volumes  []heldVolume
		disk     int64 // of a tmpfs
		sent     bool  // the disk and what is below writable layers are sent as mounts
	}{
		{name: "default", identity: root, sent: true},
		{name: "user", identity: user},
		{name: "user-without-ids", identity: identity{insideUID: codeID, insideGID: codeID}},
		{name: "user-disk-limit", identity: user, disk: 64 << 20},
		{name: "user-small-disk", identity: user, disk: 1 << 20},
		{name: "image", image: true, identity: root.named(101, 102), sent: true},
		{name: "libraries", identity: root, layers: layers, sent: true},
		{name: "user-libraries", identity: user, layers: layers},
		{name: "mounts", identity: root, asked: asked, sent: true},
		{name: "user-mounts", identity: user, asked: asked},
		{name: "volumes", identity: root, volumes: volumes, sent: true},
		{name: "user-volumes", identity: user, volumes: volumes},
		{name: "writable-host", identity: root, writable: true, sent: true},
		{name: "writable-image", image: true, identity: root, writable: true, layers: layers, sent: true},
		{name: "user-writable-image", image: true, identity: user, writable: true},
		{name: "workdir", identity: root, workdir: "/srv/project", sent: true},
		{name: "writable-workdir", image: true, identity: root, writable: true, workdir: "/srv/project", sent: true},
	} {
		t.Run(c.name, func(t *testing.T) {
			base := testRoot(t)
			switch {
			case c.image:
				base = []mount{{kind: mountOverlay, target: "/", lower: []string{"/cache/images/2", "/cache/images/1"}, readOnly: !c.writable, code: c.writable}}
			case c.writable:
				base = []mount{{kind: mountOverlay, target: "/", lower: []string{"/cache/hostroot-1"}, code: true, root: true},
					{kind: mountOverlay, target: "/usr", lower: []string{"/cache/hostroot-private-1", "/usr"}, code: true, root: true}}
			}
			workdir := defaultWorkdir
			if c.workdir != "" {
				workdir = c.workdir
			}
			points := t.TempDir()
			mounts, err := addMountPoints(points, sandboxMounts(base, workdir, c.layers, c.asked, c.volumes, nothing))
			if err != nil {
				t.Fatal(err)
			}
			in := planInput{mounts: mounts, identity: c.identity, detached: c.sent, diskSize: c.disk, empty: "/state/empty", workdir: workdir, descriptors: map[int]uint32{}}
			sent := uint32(0)
			if c.sent {
				in.descriptors[diskDescriptor] = 0
				sent++
			}
			for i, m := range mounts {
				if m.opened != nil || c.sent && m.kind == mountOverlay && !m.readOnly {
					in.descriptors[i] = sent
					sent += uint32(max(len(m.lower), 1))
				}
			}
			plan := makePlan(in)
			if b, err := plan.Encode(); err != nil || len(plan.LandlockRead) != 1 || len(plan.LandlockWrite) < 3 {
				t.Errorf("%d bytes, %v, %v, %v", len(b), plan.LandlockRead, plan.LandlockWrite, err)
			}
			var lines []string
			for _, m := range mounts {
				lines = append(lines, strings.ReplaceAll(mountLine(m), points, "/state/points"))
			}
			for _, s := range plan.Steps {
				lines = append(lines, strings.ReplaceAll(stepLine(s), points, "/state/points"))
			}
			lines = append(lines, "writable: "+strings.Join(plan.LandlockWrite, " "))
			want := lines
			if standard == nil {
				standard = lines
			} else {
				want = difference(standard, lines)
			}
			compare(t, filepath.Join("testdata", "mounts", c.name+".txt"), strings.Join(want, "\n")+"\n")
		})
	}
}

// TestAbsentFromProc has nothing mounted over names that /proc does not have, and everything
// masked where what the host has as its /proc does not tell.
func TestAbsentFromProc(t *testing.T) {
	masked := slices.Concat(maskedFiles, maskedDirs, frozenDirs)
	absent := absentFrom("/proc")
	mounted := map[string]bool{}
	for _, m := range sandboxMounts(nil, defaultWorkdir, nil, nil, nil, absent) {
		mounted[m.target] = true
	}
	for _, name := range masked {
		_, err := os.Lstat("/proc/" + name)
		if there := !os.IsNotExist(err); mounted["/proc/"+name] != there {
			t.Errorf("/proc/%s: mounted over: %v, there: %v", name, mounted["/proc/"+name], there)
		}
	}
	if absent("version") || !absent("no-such-name") {
		t.Errorf("absent: version %v, no-such-name %v, want false, true", absent("version"), absent("no-such-name"))
	}
	for _, dir := range append(lessThanProc(t), t.TempDir(), "/proc/no-such-directory") {
		if i := slices.IndexFunc(masked, absentFrom(dir)); i >= 0 {
			t.Errorf("with %s as /proc, %s is not masked", dir, masked[i])
		}
	}
}

// lessThanProc is a proc file system that shows processes only, where one can be mounted.
func lessThanProc(t *testing.T) []string {
	ctx, err := unix.Fsopen("proc", unix.FSOPEN_CLOEXEC)
	if err != nil {
		t.Logf("not tried with subset=pid: %v", err)
		return nil
	}
	defer unix.Close(ctx)
	if err := errors.Join(unix.FsconfigSetString(ctx, "subset", "pid"), unix.FsconfigCreate(ctx)); err != nil {
		t.Logf("not tried with subset=pid: %v", err)
		return nil
	}
	fd, err := unix.Fsmount(ctx, unix.FSMOUNT_CLOEXEC, 0)
	if err != nil {
		t.Logf("not tried with subset=pid: %v", err)
		return nil
	}
	t.Cleanup(func() { unix.Close(fd) })
	return []string{fmt.Sprintf("/proc/self/fd/%d", fd)}
}

// difference lists the lines that only one of two texts has, in their order.
func difference(before, after []string) []string {
	var d []string
	for _, l := range before {
		if !slices.Contains(after, l) {
			d = append(d, "- "+l)
		}
	}
	for _, l := range after {
		if !slices.Contains(before, l) {
			d = append(d, "+ "+l)
		}
	}
	return d
}

func compare(t *testing.T, path, got string) {
	t.Helper()
	if *update {
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s (-want +got), write it with -update:\n%s", path, diff)
	}
}

// words joins what is not empty.
func words(all ...string) string {
	return strings.Join(slices.DeleteFunc(all, func(s string) bool { return s == "" }), " ")
}

func mountLine(m mount) string {
	flag := func(set bool, name string) string {
		if set {
			return name
		}
		return ""
	}
	number := func(name string, format string, n int64) string {
		if n == 0 {
			return ""
		}
		return fmt.Sprintf(name+"="+format, n)
	}
	return words("mount", string(m.kind), m.target, m.source, strings.Join(m.lower, ":"), number("size", "%d", m.size), number("inodes", "%d", m.inodes),
		number("mode", "%o", int64(m.mode)), flag(m.readOnly, "ro"), flag(m.noExec, "noexec"), flag(m.devices, "dev"), flag(m.code, "code"))
}

func stepLine(s nsinit.Step) string {
	op := map[nsinit.Op]string{nsinit.OpBind: "bind", nsinit.OpReceived: "received", nsinit.OpFilesystem: "filesystem", nsinit.OpUnion: "union", nsinit.OpBindHidden: "bind-hidden",
		nsinit.OpOverlay: "overlay", nsinit.OpInner: "inner", nsinit.OpAttr: "attr", nsinit.OpMkdir: "mkdir", nsinit.OpSymlink: "symlink", nsinit.OpFile: "file",
		nsinit.OpOwnDirectories: "own", nsinit.OpRoot: "root", nsinit.OpBindSame: "bind-same", nsinit.OpLayer: "layer"}[s.Op]
	var attr []string
	for _, a := range []struct {
		flag uint32
		name string
	}{{unix.MOUNT_ATTR_RDONLY, "ro"}, {unix.MOUNT_ATTR_NOSUID, "nosuid"}, {unix.MOUNT_ATTR_NODEV, "nodev"}, {unix.MOUNT_ATTR_NOEXEC, "noexec"}} {
		if s.Attr&a.flag != 0 {
			attr = append(attr, a.name)
		}
	}
	var extra []string
	if s.Op == nsinit.OpReceived || s.Op == nsinit.OpBindSame {
		extra = append(extra, fmt.Sprintf("fd=%d", s.FD))
	}
	if s.Mode != 0 {
		extra = append(extra, fmt.Sprintf("mode=%o", s.Mode))
	}
	if s.UID != 0 || s.GID != 0 {
		extra = append(extra, fmt.Sprintf("owner=%d:%d", s.UID, s.GID))
	}
	if s.Optional {
		extra = append(extra, "optional")
	}
	return words(append([]string{"call", op, s.Path, s.Source, strings.Join(s.Options, ","), strings.Join(attr, ",")}, extra...)...)
}
