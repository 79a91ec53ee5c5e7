package backendtest

import (
	"context"
	"io"
	"path/filepath"
	"testing"
	"time"

	"github.com/llmsandbox/llmsandbox"
)

// abuse10to12CopyOut copies out what is sparse, deep and many.
func (s *suite) abuse10to12CopyOut(t *testing.T) {
	sb := s.open(t, llmsandbox.Options{})
	ctx, cancel := context.WithTimeout(testContext(t), 60*time.Second)
	defer cancel()
	wantExit(t, run(t, sb, `
import os
os.makedirs("sparse")
with open("sparse/file", "w") as f: f.truncate(1 << 40)
os.makedirs("deep"); os.chdir("deep")
for _ in range(3000):
    os.mkdir("d"); os.chdir("d")`, nil), 0)
	t.Run("10 sparse", func(t *testing.T) {
		dest := t.TempDir()
		start := time.Now()
		_, err := sb.CopyOut(ctx, here(sb, "/sandbox/sparse/file"), filepath.Join(dest, "one"))
		if err == nil {
			t.Error("a file of 1 TiB was copied: got no error, want an error")
		}
		if _, err := sb.CopyOut(ctx, here(sb, "/sandbox/sparse"), dest); err == nil {
			t.Error("a directory with a file of 1 TiB was copied: got no error, want an error")
		}
		if d := time.Since(start); d > hang {
			t.Errorf("took %v to refuse it, want at most %v", d, hang)
		}
		if n := wantOnlyPlainFiles(t, dest); n != 0 {
			t.Errorf("%d files were left, want 0", n)
		}
		taken := &limited{left: 1 << 20}
		if _, err := sb.ReadFileTo(ctx, here(sb, "/sandbox/sparse/file"), taken); err == nil {
			t.Error("reading went on though the writer failed: got no error, want an error")
		}
	})
	t.Run("11 deep", func(t *testing.T) {
		start := time.Now()
		_, err := sb.CopyOut(ctx, here(sb, "/sandbox/deep"), t.TempDir())
		t.Logf("copy out: %v", err)
		if err := sb.Remove(ctx, here(sb, "/sandbox/deep")); err != nil {
			t.Errorf("remove: %v", err)
		}
		if d := time.Since(start); d > hang {
			t.Errorf("took %v, want at most %v", d, hang)
		}
	})
	t.Run("09 many", func(t *testing.T) {
		wantExit(t, run(t, sb, "import os\nos.mkdir('many')\nfor i in range(20000): open('many/%d' % i, 'w')", nil), 0)
		start := time.Now()
		_, err := sb.ListDir(ctx, here(sb, "/sandbox/many"))
		t.Logf("list: %v", err)
		if err := sb.Remove(ctx, here(sb, "/sandbox/many")); err != nil {
			t.Errorf("remove: %v", err)
		}
		if d := time.Since(start); d > hang {
			t.Errorf("took %v, want at most %v", d, hang)
		}
	})
	answers(t, sb)
}

// limited is a writer that fails after so many bytes.
type limited struct{ left int }

func (w *limited) Write(p []byte) (int, error) {
	if w.left -= len(p); w.left < 0 {
		return 0, io.ErrShortWrite
	}
	return len(p), nil
}
