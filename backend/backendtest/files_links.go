package backendtest

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/llmsandbox/llmsandbox"
)

// acceptance41HostileMembers has links, and names that look like escapes, made
// by the program. (Archives no file system can give are the extractor's own tests.)
func (s *suite) acceptance41HostileMembers(t *testing.T) {
	sb := s.open(t, llmsandbox.Options{})
	wantExit(t, run(t, sb, `
import os
os.makedirs("mixed/sub"); os.makedirs("links/sub")
open("mixed/ok", "w").write("ok")
for d in ("mixed", "links"):
    os.symlink("/etc/passwd", d + "/absolute"); os.symlink("../../../etc/passwd", d + "/sub/relative")
    os.symlink("/", d + "/folder"); os.mkfifo(d + "/fifo")
`, nil), 0)
	dir := t.TempDir()
	res := copyOut(t, sb, here(sb, "/sandbox/mixed"), dir)
	if res.Files != 1 || len(res.Skipped) != 4 {
		t.Errorf("%+v, want Files = 1, len(res.Skipped) = 4", res)
	}
	if err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() && !d.Type().IsRegular() {
			t.Errorf("%s is %v, want an error or d.IsDir() = true or d.Type().IsRegular() = true", path, d.Type())
		}
		return err
	}); err != nil {
		t.Error(err)
	}
	none := filepath.Join(dir, "none")
	_, err := sb.CopyOut(testContext(t), here(sb, "/sandbox/links"), none)
	if !errors.Is(err, llmsandbox.ErrNoSafeContent) || !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("only links: %v, want llmsandbox.ErrNoSafeContent, fs.ErrNotExist", err)
	}
	if _, err := os.Lstat(none); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a directory was left on the host: %v, want fs.ErrNotExist", err)
	}
	// The same for copies into the sandbox: a link is left out and reported.
	from := hostTree(t, map[string]string{"ok": "ok"})
	if err := os.Symlink("/etc/passwd", from+"/link"); err != nil {
		t.Fatal(err)
	}
	if res := copyIn(t, sb, from, "in"); res.Files != 1 || len(res.Skipped) != 1 {
		t.Errorf("in: %+v, want Files = 1, len(res.Skipped) = 1", res)
	}
}

// acceptance42LinkAtDestination has a link where something is copied to, on the
// host and in the sandbox: it is replaced or refused, and what it leads to is kept.
func (s *suite) acceptance42LinkAtDestination(t *testing.T) {
	sb := s.open(t, llmsandbox.Options{})
	host := hostTree(t, map[string]string{"canary": "CANARY", "other/": "", "f": "new"})
	os.Symlink("canary", host+"/file-link")
	os.Symlink("other", host+"/folder-link")
	wantExit(t, run(t, sb, "import os\nos.makedirs('out/sub'); os.makedirs('other')\nopen('out/sub/f', 'w').write('new'); open('canary', 'w').write('CANARY')\nos.symlink('canary', 'file-link'); os.symlink('other', 'folder-link')", nil), 0)

	copyOut(t, sb, here(sb, "/sandbox/out/sub/f"), host+"/file-link")
	if got, kept := hostFile(t, host+"/file-link"), hostFile(t, host+"/canary"); got != "new" || kept != "CANARY" {
		t.Errorf("%q, canary %q, want got = \"new\", kept = \"CANARY\"", got, kept)
	}
	if _, err := sb.CopyOut(testContext(t), here(sb, "/sandbox/out"), host+"/folder-link"); !errors.Is(err, llmsandbox.ErrUnsafePath) {
		t.Errorf("a directory over a link: %v, want llmsandbox.ErrUnsafePath", err)
	}
	os.Mkdir(host+"/out", 0o755)
	os.Symlink("../other", host+"/out/sub")
	res, err := sb.CopyOut(testContext(t), here(sb, "/sandbox/out"), host)
	if !errors.Is(err, llmsandbox.ErrNoSafeContent) || len(res.Skipped) == 0 {
		t.Errorf("through a link inside: %+v, %v, want llmsandbox.ErrNoSafeContent, Skipped not empty", res, err)
	}
	if left, _ := os.ReadDir(host + "/other"); len(left) != 0 {
		t.Errorf("a link was followed: %v, want none", left)
	}

	copyIn(t, sb, host+"/f", "file-link")
	if _, err := sb.CopyIn(testContext(t), host+"/out", "folder-link"); !errors.Is(err, llmsandbox.ErrUnsafePath) {
		t.Errorf("a directory over a link of the sandbox: %v, want llmsandbox.ErrUnsafePath", err)
	}
	wantStdout(t, run(t, sb, "import os\nprint(open('file-link').read(), open('canary').read(), os.path.islink('file-link'), os.listdir('other'))", nil), "new CANARY False []\n")
}
