package transfer

import (
	"io/fs"
	"os"
	"path/filepath"
	"testing"
)

// FuzzExtract unpacks any bytes: whatever they are, nothing is made outside of the
// destination, and in it only plain files and directories within the limits.
func FuzzExtract(f *testing.F) {
	f.Fuzz(func(t *testing.T, data []byte) {
		around := t.TempDir()
		dir := filepath.Join(around, "dest")
		os.Mkdir(dir, 0o755)
		writeFile(t, around+"/canary", "CANARY")
		links := map[string]fs.FileMode{}
		for name, target := range map[string]string{"outside": "..", "inside": "real"} {
			if os.Symlink(target, filepath.Join(dir, name)) == nil {
				links[name] = fs.ModeSymlink
			}
		}
		const maxBytes, maxFiles = 1 << 16, 100
		res, _ := unpack(t, data, dir, Options{MaxBytes: maxBytes, MaxFiles: maxFiles})
		var files, bytes int64
		filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
			if err != nil {
				t.Fatal(err)
			}
			rel, _ := filepath.Rel(dir, path)
			info, _ := d.Info()
			switch {
			case d.Type().IsRegular():
				files++
				bytes += info.Size()
				if info.Mode()&^0o755 != 0 {
					t.Fatalf("%q has mode %v, want info.Mode()&^0o755 = 0", rel, info.Mode())
				}
			case d.Type() == fs.ModeSymlink && links[rel] == fs.ModeSymlink:
			case !d.IsDir():
				t.Fatalf("%q is %v, want d.IsDir() = true", rel, d.Type())
			}
			return nil
		})
		if files > res.Files || bytes > maxBytes || files > maxFiles || res.Bytes > maxBytes {
			t.Fatalf("%d files of %d bytes, result %+v, want files <= %d, bytes <= %d, files <= %d, Bytes <= %v", files, bytes, res, res.Files, maxBytes, maxFiles, maxBytes)
		}
		left, _ := os.ReadDir(around)
		if len(left) != 2 || readFile(t, around+"/canary") != "CANARY" {
			t.Fatalf("outside are now %v, want len(left) = 2, readFile(t, around+\"/canary\") = \"CANARY\"", left)
		}
	})
}
