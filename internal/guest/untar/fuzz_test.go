//go:build linux

package untar

import (
	"archive/tar"
	"bytes"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/llmsandbox/llmsandbox/internal/tarcheck"
	"github.com/llmsandbox/llmsandbox/internal/testtar"
)

// FuzzUnpack unpacks any bytes: nothing is made or changed outside of the directory, and in it
// there are only plain files, directories and links within the limits.
func FuzzUnpack(f *testing.F) {
	for _, members := range [][]testtar.Member{
		{testtar.Dir("0/", 0o755), file("0/a", "x", 0o755), testtar.Link("0/l", "a"), testtar.HardLink("h", "0/a")},
		{file("../canary", "x", 0o644)},
		{testtar.Link("l", ".."), file("l/canary", "x", 0o644)},
		{testtar.Link("l", "../canary"), testtar.HardLink("h", "l"), file("h", "x", 0o644)},
		{testtar.HardLink("h", "../canary"), file("h", "x", 0o644)},
		{file(strings.Repeat("long/", 40)+"name", "x", 0o4777)},
		{{Header: tar.Header{Typeflag: tar.TypeReg, Name: "pax", PAXRecords: map[string]string{"path": "/canary"}}, Content: "x"}},
		{testtar.Dir("d", 0), file("d/f", strings.Repeat("x", 3000), 0)},
	} {
		f.Add(testtar.Archive(f, members...))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		around := t.TempDir()
		dir := filepath.Join(around, "in")
		if err := os.WriteFile(filepath.Join(around, "canary"), []byte("safe"), 0o600); err != nil {
			t.Fatal(err)
		}
		err := Layers(bytes.NewReader(data), dir, maxMembers, maxBytes)
		untouched(t, around)
		members, size := int64(0), int64(0)
		werr := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
			if err != nil {
				return err
			}
			info, err := d.Info()
			if err != nil {
				return err
			}
			if members++; d.Type().IsRegular() {
				size += info.Size()
			}
			if kind := d.Type(); kind != 0 && kind != fs.ModeDir && kind != fs.ModeSymlink || info.Mode()&(fs.ModeSetuid|fs.ModeSetgid|fs.ModeSticky) != 0 {
				t.Errorf("%q is %v, want kind = 0 or kind = fs.ModeDir or kind = fs.ModeSymlink, info.Mode()&(fs.ModeSetuid|fs.ModeSetgid|fs.ModeSticky) = 0", path, info.Mode())
			}
			return nil
		})
		// A name may make directories on the way, and names of one file count it again.
		if werr != nil || members > 1+maxMembers*(tarcheck.MaxDepth+1) || size > maxBytes*maxMembers {
			t.Errorf("%d files of %d bytes, %v, %v, want no error, members <= %d, size <= %d", members, size, err, werr, 1+maxMembers*(tarcheck.MaxDepth+1), maxBytes*maxMembers)
		}
	})
}
