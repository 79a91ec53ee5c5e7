//go:build linux

package files_test

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"github.com/llmsandbox/llmsandbox/internal/agentclient"
	"github.com/llmsandbox/llmsandbox/internal/testtar"
)

// TestTreeKeepsLinks takes a tree with links out and in again: they say what they said,
// and nothing is written through one.
func TestTreeKeepsLinks(t *testing.T) {
	c, root := serve(t)
	dir := root + "/sandbox"
	from, to := filepath.Join(dir, "from"), filepath.Join(dir, "to")
	outside := filepath.Join(dir, "outside")
	for _, d := range []string{filepath.Join(from, "bin"), to, outside} {
		if err := os.MkdirAll(d, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for name, target := range map[string]string{"bin/tool": "../file", "gone": "/nowhere", "out": outside} {
		if err := os.Symlink(target, filepath.Join(from, name)); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(from, "file"), []byte("x"), 0o644); err != nil {
		t.Fatal(err)
	}
	var tree bytes.Buffer
	if res, err := c.TarTree(t.Context(), "/sandbox/from", "", &tree); err != nil || len(res.Skipped) > 0 {
		t.Fatalf("%+v, %v, want no error, no Skipped", res, err)
	}
	res, err := c.TarIn(t.Context(), "/sandbox/to", &tree, agentclient.TarLimits{Links: true})
	if err != nil || len(res.Skipped) > 0 {
		t.Fatalf("%+v, %v, want no error, no Skipped", res, err)
	}
	for name, want := range map[string]string{"bin/tool": "../file", "gone": "/nowhere", "out": outside} {
		if got, err := os.Readlink(filepath.Join(to, name)); got != want || err != nil {
			t.Errorf("%s leads to %q (%v), want %q", name, got, err, want)
		}
	}
	// A member below a link of the archive goes nowhere.
	evil := testtar.Archive(t, testtar.Link("way", outside), testtar.File("way/in", "", 0o644), testtar.Link("way/link", "x"),
		testtar.Link("../up", "x"), testtar.HardLink("hard", "file"))
	res, err = c.TarIn(t.Context(), "/sandbox/to", bytes.NewReader(evil), agentclient.TarLimits{Links: true})
	if err != nil || len(res.Skipped) != 4 {
		t.Errorf("%+v, %v: want four members left out", res, err)
	}
	if left, err := os.ReadDir(outside); err != nil || len(left) > 0 {
		t.Errorf("outside holds %v, %v, want no error, no left", left, err)
	}
	if _, err := os.Lstat(filepath.Join(dir, "up")); err == nil {
		t.Error("a link was made above the directory: got no error, want an error")
	}
}
