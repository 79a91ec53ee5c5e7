package local

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

func TestNames(t *testing.T) {
	for _, c := range []struct {
		name string
		id   bool
	}{
		{"sb-0a", true},
		{"a", true},
		{"-a", true},
		{"", false},
		{"A", false},
		{"a/b", false},
		{"..", false},
		{"a\n", false},
		{"a\x00", false},
		{"ä", false},
		{"\xff", false},
		{strings.Repeat("a", 40), true},
		{strings.Repeat("a", 41), false},
	} {
		if validID(c.name) != c.id {
			t.Errorf("%q: %v, want %v", c.name, !c.id, c.id)
		}
	}
}

// TestLockGoesLast: a sandbox's directory without the lock is as one whose owner died, so that nothing else is in it by then.
func TestLockGoesLast(t *testing.T) {
	b := newBackend(t)
	d, err := b.dirs()
	if err != nil {
		t.Fatal(err)
	}
	dir, err := createSandboxDir(d, newID())
	if err != nil {
		t.Fatal(err)
	}
	for i := range 50 {
		if err := os.WriteFile(filepath.Join(dir.path, "file"+strconv.Itoa(i)), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	watch, err := unix.InotifyInit1(unix.IN_CLOEXEC)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(watch)
	if _, err := unix.InotifyAddWatch(watch, dir.path, unix.IN_DELETE); err != nil {
		t.Fatal(err)
	}
	if err := dir.remove(); err != nil {
		t.Fatal(err)
	}
	events := make([]byte, 1<<16) // of which 51 take less
	n, err := unix.Read(watch, events)
	if err != nil {
		t.Fatal(err)
	}
	text := string(events[:n])
	if at := strings.Index(text, lockName); at < 0 || at < strings.LastIndex(text, "file") {
		t.Errorf("%q, want that the lock is removed last", text)
	}
}
