//go:build linux

package files

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// opened is what an opening came to.
type opened struct {
	dev, ino uint64
	kind     uint32
	flags    int
	err      error
}

func (o opened) String() string {
	if o.err != nil {
		return o.err.Error()
	}
	return fmt.Sprintf("%d:%d kind %o flags %#o", o.dev, o.ino, o.kind, o.flags)
}

type opener func(dir int, path string, flags int, mode uint32, resolve uint64) (int, error)

// try opens, and takes away again what it has made; made names that.
func try(t testing.TB, open opener, dir int, path string, flags int, resolve uint64) (o opened, made string) {
	t.Helper()
	fd, err := open(dir, path, flags, 0o600, resolve)
	if err != nil {
		return opened{err: err}, ""
	}
	defer unix.Close(fd)
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		t.Fatal(err)
	}
	o = opened{dev: st.Dev, ino: st.Ino, kind: st.Mode & unix.S_IFMT}
	if o.flags, err = unix.FcntlInt(uintptr(fd), unix.F_GETFL, 0); err != nil {
		t.Fatal(err)
	}
	o.flags &^= unix.O_NOFOLLOW | unix.O_DIRECTORY // these say how it was opened, and do nothing to what is open
	if cloexec, err := unix.FcntlInt(uintptr(fd), unix.F_GETFD, 0); err != nil || cloexec != unix.FD_CLOEXEC {
		t.Fatalf("%q is left open for programs: %d, %v, want no error, cloexec = unix.FD_CLOEXEC", path, cloexec, err)
	}
	if flags&unix.O_CREAT != 0 {
		if made, err = os.Readlink(fdPath(fd)); err != nil {
			t.Fatal(err)
		}
		if flags&unix.O_EXCL != 0 {
			if err := os.Remove(made); err != nil {
				t.Fatal(err)
			}
			o.ino = 0
		}
	}
	return o, made
}

// same opens a path in both ways and fails unless they come to the same.
func same(t testing.TB, dir int, path string, flags int, resolve uint64) {
	t.Helper()
	want, wantMade := try(t, kernelOpenat2, dir, path, flags, resolve)
	got, made := try(t, walk, dir, path, flags, resolve)
	// A kernel that loses a race with whatever changes its caches walks the path again, and counts the links of
	// both walks: of a path with 21 to 40 of them it says now and then that there are too many. And while files are renamed
	// anywhere, it says of a path with many ".." that it is to be tried again.
	for range 10_000 {
		if want.err != unix.ELOOP && want.err != unix.EAGAIN || got.err == want.err {
			break
		}
		want, wantMade = try(t, kernelOpenat2, dir, path, flags, resolve)
	}
	if got != want || made != wantMade {
		t.Fatalf("%q with flags %#o, resolve %#x: %v (made %q), openat2 has %v (made %q)", path, flags, resolve, got, made, want, wantMade)
	}
}

// used are the flags of the service's openings, and their like.
var used = []int{
	unix.O_PATH, unix.O_PATH | unix.O_NOFOLLOW, unix.O_PATH | unix.O_DIRECTORY, unix.O_PATH | unix.O_DIRECTORY | unix.O_NOFOLLOW,
	unix.O_RDONLY | unix.O_NONBLOCK, unix.O_RDONLY | unix.O_DIRECTORY, dirFlags, readFlags, writeFlags, unix.O_WRONLY | unix.O_NONBLOCK,
	writeFlags | unix.O_CREAT | unix.O_EXCL, unix.O_WRONLY | unix.O_NONBLOCK | unix.O_CREAT | unix.O_EXCL,
}

func openDir(t testing.TB, path string) int {
	t.Helper()
	fd, err := unix.Open(path, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { unix.Close(fd) })
	return fd
}

// randomPath has a few short names, so that many of them are there.
func randomPath(r *rand.Rand, root string) string {
	words := []string{"a", "b", "c", "d", "a", "b", "..", ".", "", "none", "../..", "a/.."}
	var parts []string
	for range 1 + r.IntN(5) {
		parts = append(parts, words[r.IntN(len(words))])
	}
	switch path := strings.Join(parts, "/"); r.IntN(8) {
	case 0:
		return "/" + path
	case 1:
		return path + "/"
	case 2:
		return root + "/" + path
	default:
		return path
	}
}

// plant makes a random tree below root/in; what its links lead to may be root/canary.
func plant(t testing.TB, r *rand.Rand, root string) {
	t.Helper()
	in := filepath.Join(root, "in")
	for _, err := range []error{os.Mkdir(in, 0o755), os.WriteFile(filepath.Join(root, "canary"), nil, 0o644)} {
		if err != nil {
			t.Fatal(err)
		}
	}
	dirs := []string{in}
	for range 25 {
		name := filepath.Join(dirs[r.IntN(len(dirs))], string(rune('a'+r.IntN(4))))
		if _, err := os.Lstat(name); err == nil {
			continue
		}
		var err error
		switch r.IntN(7) {
		case 0, 1, 2:
			if err = os.Mkdir(name, 0o755); err == nil {
				dirs = append(dirs, name)
			}
		case 3:
			err = os.WriteFile(name, nil, 0o644)
		case 4:
			err = unix.Mkfifo(name, 0o644)
		default:
			target := randomPath(r, in)
			if target == "" {
				target = "."
			}
			err = os.Symlink(target, name)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

func compareTree(t testing.TB, seed1, seed2 uint64, paths int) {
	t.Helper()
	r := rand.New(rand.NewPCG(seed1, seed2))
	root, err := os.MkdirTemp("", "walk")
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(root)
	plant(t, r, root)
	dir := openDir(t, filepath.Join(root, "in"))
	for range paths {
		path := randomPath(r, filepath.Join(root, "in"))
		for _, flags := range used {
			same(t, dir, path, flags, inRoot)
			same(t, dir, path, flags, beneath)
		}
	}
}

// TestWalkAsOpenat2 compares the two on random trees of directories, files and links.
func TestWalkAsOpenat2(t *testing.T) {
	for seed := range uint64(60) {
		compareTree(t, seed, 0, 60)
	}
}

func FuzzWalkAsOpenat2(f *testing.F) {
	f.Add(uint64(1), uint64(2))
	f.Fuzz(func(t *testing.T, a, b uint64) { compareTree(t, a, b, 40) })
}
