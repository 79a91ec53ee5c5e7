package hostroot

import (
	"io/fs"
	"os"
	"path/filepath"
	"testing"
)

// TestCopiesKeepTheirTimes: what caches were made from must not look newer than them.
func TestCopiesKeepTheirTimes(t *testing.T) {
	root := prepare(t, nil)
	compared := 0
	err := filepath.WalkDir(filepath.Join(root.Skeleton, "etc"), func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		rel, err := filepath.Rel(filepath.Join(root.Skeleton, "etc"), path)
		if err != nil {
			return err
		}
		if _, ours := synthetic[rel]; ours {
			return nil
		}
		copied, err := d.Info()
		if err != nil {
			return err
		}
		original, err := os.Stat(filepath.Join("/etc", rel))
		if err != nil {
			return err
		}
		compared++
		if !copied.ModTime().Equal(original.ModTime()) {
			t.Errorf("/etc/%s is of %v, its copy of %v, want copied.ModTime().Equal(original.ModTime()) = true", rel, original.ModTime(), copied.ModTime())
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
	if compared == 0 {
		t.Skip("nothing of this host's /etc is copied")
	}
}
