package backendtest

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/llmsandbox/llmsandbox"
)

// acceptance35to39FileNamesAndContent round-trips single files of each kind, by
// way of a program that reads them.
func (s *suite) acceptance35to39FileNamesAndContent(t *testing.T) {
	sb := s.open(t, llmsandbox.Options{})
	every := make([]byte, 256)
	for i := range every {
		every[i] = byte(i)
	}
	for name, content := range map[string]string{
		"text.txt": "héllo\r\nworld\n", "binary.bin": strings.Repeat(string(every), 1000), "empty": "", "a..b.txt": "dots",
		".env": "hidden", " ": "blank", "new\nline": "odd", "-rf": "dash", "bad\xff": "not UTF-8", "a:b": "colon", "back\\slash": "back",
	} {
		dir := hostTree(t, map[string]string{name: content})
		copyIn(t, sb, filepath.Join(dir, name), "in/"+name)
		res := run(t, sb, "import hashlib, os, sys\nprint(hashlib.sha256(open(os.fsencode('in') + b'/' + bytes.fromhex(sys.argv[1]), 'rb').read()).hexdigest())",
			&llmsandbox.RunOptions{Args: []string{fmt.Sprintf("%x", name)}})
		wantStdout(t, res, fmt.Sprintf("%x\n", sha256.Sum256([]byte(content))))
		back := filepath.Join(t.TempDir(), name)
		copyOut(t, sb, here(sb, "/sandbox/in/")+name, back)
		if got := hostFile(t, back); got != content {
			t.Errorf("%q came back as %d bytes, want %d", name, len(got), len(content))
		}
	}
}

func (s *suite) acceptance36Dirs(t *testing.T) {
	sb := s.open(t, llmsandbox.Options{})
	from := hostTree(t, map[string]string{"a.txt": "a", "sub/deep/b.txt": "b", "sub/empty/": "", ".git/config": "c"})
	copyIn(t, sb, from, here(sb, "/sandbox/out"))
	d := filepath.Join(t.TempDir(), "d")
	copyOut(t, sb, here(sb, "/sandbox/out"), d)
	for name, want := range map[string]string{"a.txt": "a", "sub/deep/b.txt": "b", ".git/config": "c"} {
		if got := hostFile(t, filepath.Join(d, "out", name)); got != want {
			t.Errorf("%s is %q, want %q", name, got, want)
		}
	}
	if st, err := os.Stat(filepath.Join(d, "out/sub/empty")); err != nil || !st.IsDir() {
		t.Errorf("the empty directory: %v, %v, want no error, st.IsDir() = true", st, err)
	}
}

func (s *suite) acceptance37Missing(t *testing.T) {
	sb := s.shared(t)
	dir := t.TempDir()
	if _, err := sb.CopyIn(testContext(t), dir+"/none", "x"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("in: %v, want fs.ErrNotExist", err)
	}
	_, err := sb.CopyOut(testContext(t), here(sb, "/sandbox/none"), dir+"/x")
	if !errors.Is(err, fs.ErrNotExist) || !strings.Contains(err.Error(), here(sb, "/sandbox/none")) {
		t.Errorf(here(sb, "out: %v, want fs.ErrNotExist, an error containing \"/sandbox/none\""), err)
	}
	if left, _ := os.ReadDir(dir); len(left) != 0 {
		t.Errorf("left %v, want none", left)
	}
}

// largeFile takes 100 MB in and out.
func (s *suite) largeFile(t *testing.T) {
	sb := s.open(t, llmsandbox.Options{})
	const size = 100 << 20
	content := make([]byte, size)
	rand.NewChaCha8([32]byte{1}).Read(content)
	from := filepath.Join(t.TempDir(), "large")
	if err := os.WriteFile(from, content, 0o600); err != nil {
		t.Fatal(err)
	}
	want := sha256.Sum256(content)
	start := time.Now()
	copyIn(t, sb, from, "large")
	in := time.Since(start)
	wantStdout(t, run(t, sb, "import hashlib\nprint(hashlib.file_digest(open('large', 'rb'), 'sha256').hexdigest() if hasattr(hashlib, 'file_digest') else hashlib.sha256(open('large', 'rb').read()).hexdigest())", nil), fmt.Sprintf("%x\n", want))
	to := filepath.Join(t.TempDir(), "back")
	start = time.Now()
	copyOut(t, sb, "large", to)
	out := time.Since(start)
	back, err := os.ReadFile(to)
	if err != nil || sha256.Sum256(back) != want {
		t.Fatalf("%d bytes came back, %v, want no error, sha256.Sum256(back) = %v", len(back), err, want)
	}
	t.Logf("in %v (%.0f MB/s), out %v (%.0f MB/s)", in, size/1e6/in.Seconds(), out, size/1e6/out.Seconds())
	got, err := sb.ReadFile(testContext(t), "large")
	if err != nil || !bytes.Equal(got, content) {
		t.Errorf("ReadFile: %d bytes, %v, want no error, bytes.Equal(got, content) = true", len(got), err)
	}
}
