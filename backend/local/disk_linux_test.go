package local

import (
	"os"
	"path/filepath"
	"testing"
	"time"
)

// TestDiskTemplateIsKept checks that another process finds the file system that this
// one made, and that a collection removes it once it has not been used for long.
func TestDiskTemplateIsKept(t *testing.T) {
	if _, err := findMke2fs(); err != nil {
		unable(t, err.Error())
	}
	dir := t.TempDir()
	const size = 64 << 20
	var first, second diskTemplates
	made, err := first.get(dir, size)
	if err != nil {
		t.Fatal(err)
	}
	kept, err := filepath.Glob(filepath.Join(dir, "*"))
	if err != nil || len(kept) != 1 {
		t.Fatalf("kept %v, %v; want one file", kept, err)
	}
	info, err := os.Stat(kept[0])
	if err != nil {
		t.Fatal(err)
	}
	found, err := second.get(dir, size)
	if err != nil {
		t.Fatal(err)
	}
	if len(found) == 0 || len(found) != len(made) {
		t.Fatalf("found %d extents, made %d", len(found), len(made))
	}
	for i := range made {
		if made[i].offset != found[i].offset || string(made[i].data) != string(found[i].data) {
			t.Errorf("extent %d differs, want made[i].offset = found[i].offset, string(made[i].data) = string(found[i].data)", i)
		}
	}
	if now, err := os.Stat(kept[0]); err != nil || !os.SameFile(now, info) {
		t.Errorf("it was made again (%v), want no error, os.SameFile(now, info) = true", err)
	}
	old := time.Now().Add(-2 * unusedPrepared)
	if err := os.Chtimes(kept[0], old, old); err != nil {
		t.Fatal(err)
	}
	left, err := collectPrepared(t.Context(), dirs{cache: dir}, unusedPrepared)
	if err != nil || len(left) != 1 || left[0].Kind != "disk" || !left[0].Removed {
		t.Errorf("collection: %+v, %v, want no error, len(left) = 1, Kind = \"disk\", Removed true", left, err)
	}
	if kept, _ := filepath.Glob(filepath.Join(dir, "*")); len(kept) != 0 {
		t.Errorf("left %v, want none", kept)
	}
}
