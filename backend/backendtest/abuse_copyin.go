package backendtest

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/llmsandbox/llmsandbox"
)

// abuse27to29CopyIn copies into places that hostile code has prepared.
func (s *suite) abuse27to29CopyIn(t *testing.T) {
	secret := plantFile(t, os.TempDir())
	sb := s.open(t, llmsandbox.Options{})
	ctx := testContext(t)
	wantExit(t, run(t, sb, `
import os
os.makedirs("/tmp/elsewhere"); os.makedirs("in")
os.symlink("/tmp/elsewhere", "linked"); os.symlink("/tmp/elsewhere", "in/sub")
os.symlink("/tmp/elsewhere/file", "in/file")
os.mkfifo("in/fifo")`, nil), 0)
	source := t.TempDir()
	if err := os.MkdirAll(filepath.Join(source, "sub"), 0o755); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"file", "sub/file", "fifo"} {
		if err := os.WriteFile(filepath.Join(source, name), []byte("from outside"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for link, target := range map[string]string{"link": secret, "sub/link": secret, "folder": os.TempDir()} {
		if err := os.Symlink(target, filepath.Join(source, link)); err != nil {
			t.Fatal(err)
		}
	}
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	for _, dest := range []string{here(sb, "/sandbox/in"), here(sb, "/sandbox/linked"), here(sb, "/sandbox/fresh")} {
		res, err := sb.CopyIn(ctx, source, dest)
		t.Logf("%s: %+v, %v", dest, res, err)
	}
	for _, name := range []string{"file", "fifo"} {
		res, err := sb.CopyIn(ctx, filepath.Join(source, "file"), here(sb, "/sandbox/in/")+name)
		t.Logf("onto %s: %+v, %v", name, res, err)
	}
	if ctx.Err() != nil {
		t.Errorf("a FIFO in the way blocked the host: %v, want no error", ctx.Err())
	}
	for _, dest := range []string{here(sb, "/sandbox/../etc/x"), "../x", "a/..", here(sb, "/sandbox/in/../../tmp/y")} {
		if _, err := sb.CopyIn(ctx, filepath.Join(source, "file"), dest); err == nil {
			t.Errorf("destination %q was accepted, want an error", dest)
		}
	}
	res := run(t, sb, attempts+`
if os.listdir("/tmp/elsewhere"):
    print("through a link REACHED", os.listdir("/tmp/elsewhere"))
for root, dirs, names in os.walk("/sandbox"):
    for name in names:
        path = os.path.join(root, name)
        if os.path.isfile(path) and not os.path.islink(path) and not name.startswith(".run-"):
            print(path, open(path).read())
print("end")`, nil)
	wantNothingReached(t, res)
	if !strings.Contains(res.Stdout, here(sb, "/sandbox/fresh/sub/file from outside")) {
		t.Errorf(here(sb, "the directory did not arrive, want it to contain \"/sandbox/fresh/sub/file from outside\":\n%s"), res.Stdout)
	}
}
