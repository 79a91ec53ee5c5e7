//go:build linux

package files

import (
	"bytes"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/llmsandbox/llmsandbox/internal/agentproto"
)

// FuzzTarIn unpacks any bytes: nothing is made outside of the destination, and in it
// only plain files and directories within the limits.
func FuzzTarIn(f *testing.F) {
	f.Fuzz(func(t *testing.T, data []byte) {
		around := t.TempDir()
		dir := filepath.Join(around, "dest")
		os.MkdirAll(dir, 0o755)
		os.WriteFile(around+"/canary", []byte("CANARY"), 0o644)
		os.Symlink("..", dir+"/outside")
		os.Symlink(around+"/canary", dir+"/l")
		fd, err := unix.Open(dir, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
		if err != nil {
			t.Fatal(err)
		}
		defer unix.Close(fd)
		const maxBytes, maxFiles = 1 << 16, 100
		_, _ = tarIn(bytes.NewReader(data), fd, &agentproto.TarInRequest{MaxBytes: maxBytes, MaxFiles: maxFiles}) // most of it is no archive
		var size int64
		files := 0
		filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
			if err != nil {
				t.Fatal(err)
			}
			info, err := d.Info()
			if err != nil {
				t.Fatal(err)
			}
			switch {
			case d.Type().IsRegular():
				files++
				size += info.Size()
				if info.Mode()&^0o755 != 0 {
					t.Fatalf("%q has mode %v, want info.Mode()&^0o755 = 0", path, info.Mode())
				}
			case path == dir+"/outside" || path == dir+"/l":
			case !d.IsDir():
				t.Fatalf("%q is %v, want d.IsDir() = true", path, d.Type())
			}
			return nil
		})
		if files > maxFiles || size > maxBytes {
			t.Fatalf("%d files of %d bytes, want files <= %d, size <= %d", files, size, maxFiles, maxBytes)
		}
		left, _ := os.ReadDir(around)
		canary, _ := os.ReadFile(around + "/canary")
		if len(left) != 2 || string(canary) != "CANARY" {
			t.Fatalf("outside are now %v, the canary is %q, want len(left) = 2, canary = \"CANARY\"", left, canary)
		}
	})
}
