// Package testtar makes the tar archives that tests unpack.
package testtar

import (
	"archive/tar"
	"bytes"
	"io"
	"testing"
)

// A Member of an archive: its header, whose size is that of the content.
type Member struct {
	tar.Header
	Content string
}

// File is a regular file.
func File(name, content string, mode int64) Member {
	return Member{tar.Header{Typeflag: tar.TypeReg, Name: name, Mode: mode}, content}
}

// Dir is a directory.
func Dir(name string, mode int64) Member {
	return Member{tar.Header{Typeflag: tar.TypeDir, Name: name, Mode: mode}, ""}
}

// Link is a symbolic link.
func Link(name, target string) Member {
	return Member{tar.Header{Typeflag: tar.TypeSymlink, Name: name, Linkname: target, Mode: 0o777}, ""}
}

// HardLink is another name of a file.
func HardLink(name, target string) Member {
	return Member{tar.Header{Typeflag: tar.TypeLink, Name: name, Linkname: target}, ""}
}

// Filled are members of which all regular files have the same content.
func Filled(content string, headers ...tar.Header) []Member {
	members := make([]Member, len(headers))
	for i, h := range headers {
		if members[i].Header = h; h.Typeflag == tar.TypeReg {
			members[i].Content = content
		}
	}
	return members
}

// Archive writes an archive.
func Archive(t testing.TB, members ...Member) []byte {
	t.Helper()
	var buf bytes.Buffer
	w := tar.NewWriter(&buf)
	for _, m := range members {
		h := m.Header
		h.Format = tar.FormatPAX         // which keeps fractions of seconds
		if h.Typeflag != tar.TypeBlock { // which has none, and may still say one
			h.Size = int64(len(m.Content))
		}
		if err := w.WriteHeader(&h); err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(w, m.Content); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return buf.Bytes()
}
