//go:build linux

package files

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// TestWalkCases compares what random trees seldom have.
func TestWalkCases(t *testing.T) {
	root := t.TempDir()
	link := func(target, name string) {
		t.Helper()
		if err := os.Symlink(target, filepath.Join(root, name)); err != nil {
			t.Fatal(err)
		}
	}
	deep := strings.TrimSuffix(strings.Repeat("d/", 200), "/")
	if err := os.MkdirAll(filepath.Join(root, deep), 0o755); err != nil {
		t.Fatal(err)
	}
	put := filepath.Join(root, deep, "f")
	if err := os.WriteFile(put, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	link("loop", "loop")
	link(deep+"/f", "far")
	link(deep+strings.Repeat("/..", 60), "farup")
	link("d/", "slash")
	link("slash", "toslash")
	link("none", "dangling")
	for i := range 45 {
		link(fmt.Sprintf("l%d", i+1), fmt.Sprintf("l%d", i))
	}
	link("/", "l45")
	dir := openDir(t, root)
	long := strings.Repeat("n", 255)
	for _, path := range []string{
		"", "/", "//", ".", "..", "../..", "/..", "loop", "loop/x", "far", "far/", "farup", "farup/d", "slash", "slash/d", "toslash", "toslash/",
		"dangling", "dangling/", "l0", "l4", "l5", "l6", "l5/", "l6/", "l5/d", "l6/d", deep + "/f/x", deep + "/f/", deep + "/f/.", deep + "/f/..",
		long, long + "n", long + "/x", "d\x00", strings.Repeat("/", maxPath-1), strings.Repeat("/", maxPath), strings.Repeat("d/", 199) + "../d/f",
		"d/none/..", "none/../d", "d/../loop/..", strings.Repeat("d/../", 700),
	} {
		for _, flags := range used {
			same(t, dir, path, flags, inRoot)
			same(t, dir, path, flags, beneath)
		}
	}
	// Made where a dangling link leads, which is in the root whatever it says.
	link("/../../made", "making")
	fd, err := walk(dir, "making", unix.O_WRONLY|unix.O_CREAT, 0o600, inRoot)
	if err != nil {
		t.Fatal(err)
	}
	unix.Close(fd)
	if _, err := os.Lstat(filepath.Join(root, "made")); err != nil {
		t.Error(err)
	}
}

// TestWalkGoesNotFurtherUp has a path that comes back up through more directories than a
// walk holds open: it is refused, and nothing is guessed.
func TestWalkGoesNotFurtherUp(t *testing.T) {
	root := t.TempDir()
	deep := strings.Repeat("d/", 200)
	if err := os.MkdirAll(filepath.Join(root, deep), 0o755); err != nil {
		t.Fatal(err)
	}
	dir := openDir(t, root)
	for up, want := range map[int]error{maxAbove - 1: nil, maxAbove: unix.ENAMETOOLONG, 300: unix.ENAMETOOLONG} {
		fd, err := walk(dir, deep+strings.Repeat("../", up), unix.O_PATH, 0, inRoot)
		if err == nil {
			unix.Close(fd)
		}
		if err != want {
			t.Errorf("%d up: %v, want %v", up, err, want)
		}
	}
}

// TestWalkKernelDirectories compares /proc with its magic links, and other mounts.
func TestWalkKernelDirs(t *testing.T) {
	dir := openDir(t, "/")
	here, err := os.Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer here.Close()
	fd := fdPath(int(here.Fd()))
	for _, path := range []string{
		"/proc/1/root", "/proc/1/root/etc", "/proc/self/exe", "/proc/self/cwd/.", fd, fd + "/", fd + "/x", "/proc/self", "/proc/self/status",
		"/proc/thread-self/comm", "/proc/mounts", "/proc/net", "/proc/net/dev", "/proc/self/ns/net", "/proc/self/ns/net/", "/dev/fd", "/dev/fd/0",
		"/dev/stdin", "/sys/kernel", "/dev/null", "proc", "proc/", "proc/self", "dev/null", "sys/kernel", "proc/..", "etc",
	} {
		for _, flags := range used[:6] {
			same(t, dir, path, flags, inRoot)
			same(t, dir, path, flags, beneath)
		}
	}
}

// TestWalkLeavesNothingOpen counts descriptors over walks that end in all ways.
func TestWalkLeavesNothingOpen(t *testing.T) {
	count := func() int {
		t.Helper()
		list, err := os.ReadDir("/proc/self/fd")
		if err != nil {
			t.Fatal(err)
		}
		return len(list)
	}
	before := count()
	for seed := range uint64(5) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) { compareTree(t, seed, 9, 20) })
	}
	if after := count(); after != before {
		t.Errorf("%d descriptors are open, %d before", after, before)
	}
}

// TestOpenat2IsUsed shows which of the two this process has: the kernel's, where it has it.
func TestOpenat2IsUsed(t *testing.T) {
	forced := noOpenat2.Load()
	defer noOpenat2.Store(forced)
	noOpenat2.Store(false)
	dir := openDir(t, t.TempDir())
	fd, err := openat2(dir, ".", unix.O_PATH, 0, beneath)
	if err != nil {
		t.Fatal(err)
	}
	unix.Close(fd)
	how := unix.OpenHow{Flags: unix.O_PATH | unix.O_CLOEXEC}
	fd, err = unix.Openat2(dir, ".", &how)
	if err == nil {
		unix.Close(fd)
	}
	if missing := err == unix.ENOSYS; noOpenat2.Load() != missing {
		t.Errorf("the walk is used: %v, the kernel lacks openat2: %v", !missing, missing)
	}
}
