package transfer

import (
	"archive/tar"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/llmsandbox/llmsandbox/internal/tarcheck"
)

func regular(name string) tar.Header { return tar.Header{Name: name, Typeflag: tar.TypeReg, Size: 3} }

func TestExtractMembers(t *testing.T) {
	for name, test := range map[string]struct {
		header  tar.Header
		skipped bool
		mode    fs.FileMode // of what arrives at "x", 0 for nothing
	}{
		"file":            {header: tar.Header{Name: "x", Typeflag: tar.TypeReg, Mode: 0o640}, mode: 0o640},
		"program":         {header: tar.Header{Name: "x", Typeflag: tar.TypeReg, Mode: 0o755}, mode: 0o755},
		"setuid":          {header: tar.Header{Name: "x", Typeflag: tar.TypeReg, Mode: 0o7777}, mode: 0o755},
		"no mode":         {header: tar.Header{Name: "x", Typeflag: tar.TypeReg}, mode: 0o600},
		"dot":             {header: tar.Header{Name: "./x", Typeflag: tar.TypeReg}, mode: 0o600},
		"folder":          {header: tar.Header{Name: "x/", Typeflag: tar.TypeDir, Mode: 0o777}, mode: fs.ModeDir | 0o755},
		"dest itself":     {header: tar.Header{Name: "./", Typeflag: tar.TypeDir}},
		"nameless":        {header: tar.Header{Name: ".", Typeflag: tar.TypeReg}, skipped: true},
		"absolute":        {header: tar.Header{Name: "/x", Typeflag: tar.TypeReg}, skipped: true},
		"up":              {header: tar.Header{Name: "../x", Typeflag: tar.TypeReg}, skipped: true},
		"up inside":       {header: tar.Header{Name: "a/../x", Typeflag: tar.TypeReg}, skipped: true},
		"ends up":         {header: tar.Header{Name: "x/..", Typeflag: tar.TypeDir}, skipped: true},
		"symbolic link":   {header: tar.Header{Name: "x", Typeflag: tar.TypeSymlink, Linkname: "/etc/passwd"}, skipped: true},
		"hard link":       {header: tar.Header{Name: "x", Typeflag: tar.TypeLink, Linkname: "/etc/passwd"}, skipped: true},
		"FIFO":            {header: tar.Header{Name: "x", Typeflag: tar.TypeFifo}, skipped: true},
		"device":          {header: tar.Header{Name: "x", Typeflag: tar.TypeChar, Devmajor: 1, Devminor: 3}, skipped: true},
		"contiguous file": {header: tar.Header{Name: "x", Typeflag: tar.TypeCont}, skipped: true},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			res, err := unpack(t, archive(test.header), dir, Options{})
			if err != nil || test.skipped != (len(res.Skipped) == 1) {
				t.Fatalf("%+v, %v, want no error, skipped = %v", res, err, len(res.Skipped) == 1)
			}
			st, err := os.Lstat(dir + "/x")
			if test.mode == 0 {
				if left, _ := os.ReadDir(dir); len(left) != 0 {
					t.Fatalf("left %v, want none", left)
				}
			} else if err != nil || st.Mode() != test.mode {
				t.Fatalf("%v, %v, want no error, Mode = %v", st, err, test.mode)
			}
		})
	}
}

// TestExtractFollowsNoLink has links in the destination, to its outside and to its
// inside, where an os.Root alone would go.
func TestExtractFollowsNoLink(t *testing.T) {
	out, dir := t.TempDir(), t.TempDir()
	writeFile(t, out+"/canary", "CANARY")
	os.Mkdir(dir+"/real", 0o755)
	writeFile(t, dir+"/real/canary", "CANARY")
	for name, target := range map[string]string{"file": out + "/canary", "outside": out, "inside": "real", "dangling": "none"} {
		if err := os.Symlink(target, filepath.Join(dir, name)); err != nil {
			t.Skip("no symbolic links here: ", err)
		}
	}
	res, err := unpack(t, archive(regular("file"), regular("outside/canary"), regular("inside/canary"), regular("dangling/x"),
		tar.Header{Name: "inside/", Typeflag: tar.TypeDir}, regular("a..b.txt")), dir, Options{})
	if err != nil || res.Files != 2 || len(res.Skipped) != 4 {
		t.Fatalf("%+v, %v, want no error, Files = 2, len(res.Skipped) = 4", res, err)
	}
	if st, err := os.Lstat(dir + "/file"); err != nil || !st.Mode().IsRegular() || st.Size() != 3 {
		t.Fatalf("the link at a file's place was not replaced: %v, %v, want no error, st.Mode().IsRegular() = true, Size = 3", st, err)
	}
	for _, canary := range []string{out + "/canary", dir + "/real/canary"} {
		if got := readFile(t, canary); got != "CANARY" {
			t.Errorf("%s is %q, want \"CANARY\"", canary, got)
		}
	}
}

func TestExtractFailures(t *testing.T) {
	for name, test := range map[string]struct {
		data []byte
		want error
		says string
	}{
		"bytes":               {archive(tar.Header{Name: "f", Typeflag: tar.TypeReg, Size: 100}), tarcheck.ErrTooLarge, ""},
		"members":             {archive(regular("a"), regular("b"), regular("c"), regular("d"), regular("e")), tarcheck.ErrTooLarge, ""},
		"depth":               {archive(regular(strings.Repeat("d/", tarcheck.MaxDepth+1) + "f")), tarcheck.ErrTooLarge, ""},
		"file for a folder":   {archive(regular("folder")), fs.ErrExist, "a directory at its place"},
		"folder for a file":   {archive(tar.Header{Name: "plain/", Typeflag: tar.TypeDir}), fs.ErrExist, "that is not a directory"},
		"file below a file":   {archive(regular("plain/x")), fs.ErrExist, ""},
		"damaged":             {[]byte(strings.Repeat("x", 1024)), tar.ErrHeader, ""},
		"extended header bad": {pax("9 badkey\n"), tar.ErrHeader, ""},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			os.Mkdir(dir+"/folder", 0o755)
			writeFile(t, dir+"/plain", "plain")
			_, err := unpack(t, test.data, dir, Options{MaxBytes: 99, MaxFiles: 4})
			if !errors.Is(err, test.want) || !strings.Contains(err.Error(), test.says) {
				t.Fatalf("%v, want %v that says %q", err, test.want, test.says)
			}
			left, _ := filepath.Glob(dir + "/.llmsandbox-*")
			if got := readFile(t, dir+"/plain"); got != "plain" || len(left) != 0 {
				t.Fatalf("plain is %q, left %v, want got = \"plain\", no left", got, left)
			}
		})
	}
}

// pax is an archive whose first member is a raw extended header.
func pax(record string) []byte {
	b := archive(tar.Header{Name: "pax", Typeflag: tar.TypeReg, Size: int64(len(record))}, regular("x"))
	copy(b[512:], record)
	b[156] = tar.TypeXHeader
	for i := 148; i < 156; i++ {
		b[i] = ' '
	}
	sum := 0
	for _, c := range b[:512] {
		sum += int(c)
	}
	for i := 153; i >= 148; i-- {
		b[i] = byte('0' + sum%8)
		sum /= 8
	}
	b[154] = 0
	return b
}
