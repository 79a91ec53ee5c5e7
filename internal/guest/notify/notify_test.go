//go:build linux

package notify

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"
)

// calls are those that are handed over, by their numbers on all architectures.
var calls = []int32{
	unix.SYS_FCHMOD, unix.SYS_FCHMODAT, unix.SYS_FCHMODAT2, unix.SYS_FCHOWN, unix.SYS_FCHOWNAT, unix.SYS_UTIMENSAT, unix.SYS_CONNECT,
	90, 92, 94, 132, 235, 261, // chmod, chown, lchown, utime, utimes and futimesat of amd64
	0,
}

// FuzzCarryOut: whatever a call's arguments and the memory that they point to are, nothing outside of the directory that may be written
// to changes, and no connection is made. The memory is the last of this process before what it cannot read.
func FuzzCarryOut(f *testing.F) {
	dir := f.TempDir()
	work, outside := filepath.Join(dir, "work"), filepath.Join(dir, "work-outside")
	for _, name := range []string{"work/d", "work-outside/d"} {
		if err := os.MkdirAll(filepath.Join(dir, name), 0o755); err != nil {
			f.Fatal(err)
		}
	}
	for _, name := range []string{"work/f", "work/d/f", "work-outside/f", "work-outside/d/f"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte("x"), 0o644); err != nil {
			f.Fatal(err)
		}
	}
	for name, to := range map[string]string{"l": "f", "o": outside + "/f", "u": "../work-outside", "c": "c"} {
		if err := os.Symlink(to, filepath.Join(work, name)); err != nil {
			f.Fatal(err)
		}
	}
	proc, err := unix.Open("/proc", unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		f.Fatal(err)
	}
	task, err := unix.Open("/proc/self", unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		f.Fatal(err)
	}
	h, err := New(Options{Writable: []string{work}}, proc)
	if err != nil {
		f.Fatal(err)
	}
	page := unix.Getpagesize()
	memory, err := unix.Mmap(-1, 0, 3*page, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANON)
	if err != nil {
		f.Fatal(err)
	}
	if err := unix.Mprotect(memory[2*page:], unix.PROT_NONE); err != nil {
		f.Fatal(err)
	}
	memory = memory[:2*page]
	before := state(f, outside)

	const here = uint64(1<<64 + unix.AT_FDCWD)
	for i := range calls {
		f.Add(uint8(i), uint8(2), here, uint64(0), uint64(0o700), uint64(0), uint64(0), []byte(work+"/f\x00"))
		f.Add(uint8(i), uint8(1), here, uint64(0o700), uint64(0o700), uint64(0), uint64(0), []byte(work+"/u/f\x00"))
	}
	for _, path := range []string{
		outside + "/f\x00", work + "/o\x00", work + "/c\x00", work + "/../work-outside/d\x00", "/proc/self/fd/0\x00", "/dev/fd/99999999999\x00", "/proc/self/fd/-1\x00",
		"/proc/self/cwd\x00", "\x00", "no end", strings.Repeat("/", unix.PathMax), strings.Repeat("x/", 2047) + "\x00",
		"\x02\x00\x00\x50\x7f\x00\x00\x01\x00\x00\x00\x00\x00\x00\x00\x00",
	} {
		f.Add(uint8(1), uint8(2), here, uint64(0), uint64(0o4755), uint64(0), uint64(unix.AT_EMPTY_PATH), []byte(path))
		f.Add(uint8(5), uint8(6), uint64(0), uint64(0), uint64(0), uint64(0), uint64(0), []byte(path))
	}
	f.Fuzz(func(t *testing.T, number, pointers uint8, a, b, c, d, e uint64, text []byte) {
		text = text[:min(len(text), len(memory))]
		clear(memory)
		copy(memory[len(memory)-len(text):], text)
		at := uint64(uintptr(unsafe.Pointer(unsafe.SliceData(memory)))) + uint64(len(memory)-len(text))
		args := [6]uint64{a, b, c, d, e}
		for i := range args {
			if pointers>>i&1 == 1 {
				args[i] = at
			}
		}
		call := call{Handler: h, notification: notification{received: received{nr: calls[int(number)%len(calls)], args: args}}, listener: -1, task: task}
		if err := call.carryOut(); err == nil && call.nr == unix.SYS_CONNECT {
			t.Errorf("%d, %v, %q: connected, want an error", call.nr, args, text)
		}
		if after := state(t, outside); after != before {
			t.Errorf("%d, %v, %q: %v outside, want %v as before", call.nr, args, text, after, before)
		}
	})
}

// state is all that could change of what is in a directory of FuzzCarryOut.
func state(t testing.TB, dir string) (all [4]unix.Stat_t) {
	t.Helper()
	for i, name := range []string{"", "d", "f", "d/f"} {
		if err := unix.Lstat(filepath.Join(dir, name), &all[i]); err != nil {
			t.Fatal(err)
		}
		all[i].Atim = unix.Timespec{} // that of a look
	}
	return all
}
