package transfer

import (
	"crypto/sha256"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// tree reads a directory as path -> what is there.
func tree(t rapid.TB, dir string) map[string]string {
	found := map[string]string{}
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name, _ := filepath.Rel(dir, path)
		info, err := d.Info()
		if err != nil {
			return err
		}
		if d.IsDir() {
			found[name] = "folder"
			return nil
		}
		if d.Type()&fs.ModeSymlink != 0 {
			found[name] = "link"
			return nil
		}
		content, err := os.ReadFile(path)
		found[name] = fmt.Sprintf("%v %d %x", info.Mode(), len(content), sha256.Sum256(content))
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// plant makes a random tree.
func plant(t *rapid.T, dir string) {
	name := rapid.OneOf(
		rapid.SampledFrom([]string{".env", "a..b.txt", "...", " ", "-rf", "new\nline", "back\\slash", "bad\xff\xfe", "\x1b[2J", "ä€😀", "c:d", "*", "x.llmsandbox-y"}),
		rapid.StringMatching(`[a-z]{1,40}`), rapid.StringMatching(`[a-z]{200,255}`),
	)
	size := rapid.OneOf(rapid.IntRange(0, 3000), rapid.IntRange(60<<10, 300<<10), rapid.SampledFrom([]int{512, 64 << 10, copyBuffer, copyBuffer + 1}))
	random := rand.NewChaCha8([32]byte{rapid.Byte().Draw(t, "seed")})
	dirs := []string{dir}
	for range rapid.IntRange(0, 20).Draw(t, "entries") {
		path := filepath.Join(rapid.SampledFrom(dirs).Draw(t, "dir"), name.Draw(t, "name"))
		if _, err := os.Lstat(path); err == nil {
			continue
		}
		if rapid.Bool().Draw(t, "folder") {
			if err := os.Mkdir(path, 0o755); err != nil {
				t.Fatal(err)
			}
			dirs = append(dirs, path)
			continue
		}
		mode := rapid.SampledFrom([]os.FileMode{0o644, 0o600, 0o755, 0o700}).Draw(t, "mode")
		content := make([]byte, size.Draw(t, "size"))
		random.Read(content)
		if err := os.WriteFile(path, content, mode); err != nil {
			t.Fatal(err)
		}
	}
}

// TestRoundTrip copies random trees in and out again: the same comes back.
func TestRoundTrip(t *testing.T) {
	guest, root := sandbox(t)
	rapid.Check(t, func(rt *rapid.T) {
		from, to := tempDir(rt), tempDir(rt)
		plant(rt, from)
		defer os.RemoveAll(root + "/sandbox/t")
		if err := os.Mkdir(root+"/sandbox/t", 0o755); err != nil {
			rt.Fatal(err)
		}
		want := tree(rt, from)
		in, err := CopyIn(t.Context(), guest, from, "/sandbox/t", Options{})
		if err != nil || len(in.Skipped) != 0 {
			rt.Fatal(in, err)
		}
		if diff := cmp.Diff(want, tree(rt, root+"/sandbox/t")); diff != "" {
			rt.Fatal("in: ", diff)
		}
		out, err := CopyOut(t.Context(), guest, "/sandbox/t", to, Options{})
		if err != nil || len(out.Skipped) != 0 || out.Files != in.Files || out.Bytes != in.Bytes {
			rt.Fatal(in, out, err)
		}
		if diff := cmp.Diff(want, tree(rt, to+"/t")); diff != "" {
			rt.Fatal("out: ", diff)
		}
	})
}

func tempDir(t *rapid.T) string {
	dir, err := os.MkdirTemp("", "transfer")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	return dir
}
