package agentbin

import (
	"io"
	"os"
	"sync"
	"testing"
)

// maxSize is the agent's budget: starting it is on the path of every sandbox.
const maxSize = 3 << 20

func TestBinary(t *testing.T) {
	for arch := range binaries {
		r, err := Open(arch)
		if err != nil {
			t.Fatal(err)
		}
		content, err := io.ReadAll(r)
		if err != nil {
			t.Fatal(err)
		}
		if len(content) > maxSize {
			t.Errorf("%s: %d bytes, the budget is %d", arch, len(content), maxSize)
		}
		size, err := Size(arch)
		if err != nil || size != int64(len(content)) {
			t.Errorf("%s: size %d, %v; want %d", arch, size, err, len(content))
		}
	}
	one, err := Key("amd64")
	other, err2 := Key("arm64")
	if err != nil || err2 != nil || one == "" || one == other {
		t.Errorf("keys %q, %v and %q, %v", one, err, other, err2)
	}
	if _, err := Key("mips"); err == nil {
		t.Error("a key for mips: got no error, want an error")
	}
	if _, err := Open("mips"); err == nil {
		t.Error("an agent for mips: got no error, want an error")
	}
}

func TestExtract(t *testing.T) {
	dir := t.TempDir()
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			if _, err := Extract(dir, "amd64"); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	path, err := Extract(dir, "amd64")
	if err != nil {
		t.Fatal(err)
	}
	if entries, err := os.ReadDir(dir); err != nil || len(entries) != 1 {
		t.Errorf("left behind: %v, %v, want no error, len(entries) = 1", entries, err)
	}
	// A damaged one is replaced.
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte("x"), 0o500); err != nil {
		t.Fatal(err)
	}
	if _, err := Extract(dir, "amd64"); err != nil {
		t.Fatal(err)
	}
	size, _ := Size("amd64")
	if info, err := os.Stat(path); err != nil || info.Size() != size {
		t.Errorf("not replaced: %v, %v, want no error, Size = %v", info, err, size)
	}
}

func BenchmarkExtract(b *testing.B) {
	dir := b.TempDir()
	for b.Loop() {
		if _, err := Extract(dir, "amd64"); err != nil {
			b.Fatal(err)
		}
	}
}
