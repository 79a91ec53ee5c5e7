package ociimage

import (
	"archive/tar"
	"bytes"
	"errors"
	"fmt"
	"io"
	"path"
	"slices"
	"strings"
	"testing"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"

	"github.com/llmsandbox/llmsandbox/backend"
	"github.com/llmsandbox/llmsandbox/internal/testimage"
	"github.com/llmsandbox/llmsandbox/internal/testtar"
)

// treeOf is what layers make together.
func treeOf(t *testing.T, layers ...[]testtar.Member) *Tree {
	t.Helper()
	var all []v1.Layer
	for _, l := range layers {
		all = append(all, layerOf(t, l...))
	}
	place, err := Locate(testimage.Layout(t, map[string]v1.Image{"1": imageOf(t, v1.Config{}, all...)}) + ":1")
	if err != nil {
		t.Fatal(err)
	}
	img, err := place.Open(t.Context(), Options{}, "")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(img.Close)
	tree, err := img.Tree(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return tree
}

func TestTree(t *testing.T) {
	owned := file("mine", "x")
	owned.Uid, owned.Gid = 7, 8
	tree := treeOf(t,
		[]testtar.Member{directory("a/"), file("a/1", "one"), file("a/2", "two"), file("b/gone", ""), file("c/gone", ""), file("d/gone", ""), owned, testtar.File("set", "", 0o4755)},
		[]testtar.Member{file("a/.wh.1", ""), testtar.HardLink("a/3", "a/2"), directory("b/"), file("b/.wh..wh..opq", ""), file("b/new", "n"), file(".wh.c", ""), testtar.Link("d", "a"), file("e/.wh.none", "")},
		[]testtar.Member{directory("c/"), file("mine", "y")})
	want := []string{"a 5 755 0:0 0", "a/2 0 644 0:0 3", "a/3 0 644 0:0 3", "b 5 755 0:0 0", "b/new 0 644 0:0 1", "c 5 755 0:0 0", "d 2 777 0:0 0", "mine 0 644 0:0 1", "set 0 755 0:0 0"}
	var got []string
	for name, f := range tree.files {
		got = append(got, fmt.Sprintf("%s %c %o %d:%d %d", name, f.kind, f.mode, f.uid, f.gid, f.size))
	}
	slices.Sort(got)
	if !slices.Equal(got, want) {
		t.Errorf("got  %q\nwant %q", got, want)
	}
}

// now is a file of which the contents were not sent.
func now(m testtar.Member) testtar.Member {
	m.Header.Size, m.Header.Typeflag, m.Content = int64(len(m.Content)), tar.TypeBlock, ""
	return m
}

// untold is a name of which no more is known.
func untold(name string) testtar.Member { return member(tar.TypeFifo, name) }

func member(kind byte, name string) testtar.Member {
	m := file(name, "")
	m.Header.Typeflag = kind
	return m
}

func TestChanges(t *testing.T) {
	base := []testtar.Member{
		directory("d/"), directory("d/e/"), file("d/e/f", "base"), file("d/g", ""), testtar.Link("l", "d"), file("x", "same"), testtar.File("su", "s", 0o4755), directory("m/"), file("m/below", ""),
	}
	same := []testtar.Member{directory("d/"), directory("d/e/"), now(file("d/e/f", "base")), now(file("d/g", "")), testtar.Link("l", "d"), now(file("x", "same")), now(testtar.File("su", "s", 0o755)), untold("m")}
	// with replaces what is there of some names; without content, a name is left out.
	with := func(changed ...testtar.Member) []testtar.Member {
		all := slices.Clone(same)
		for _, m := range changed {
			if i := slices.IndexFunc(all, func(o testtar.Member) bool { return path.Clean(o.Name) == path.Clean(m.Name) }); i >= 0 {
				all[i] = m
			} else {
				all = append(all, m)
			}
		}
		return all
	}
	without := func(names ...string) []testtar.Member {
		return slices.DeleteFunc(slices.Clone(same), func(m testtar.Member) bool { return slices.Contains(names, path.Clean(m.Name)) })
	}
	owned := file("x", "same")
	owned.Uid = 7
	touched := now(file("x", "same"))
	touched.ModTime = time.Unix(1, 0)
	for name, c := range map[string]struct {
		root []testtar.Member
		want []string
		err  error
	}{
		"nothing":                     {root: same},
		"sent, and the same":          {root: with(file("d/e/f", "base"), file("x", "same"))},
		"contents of the same length": {root: with(file("d/e/f", "bare")), want: []string{"0 d/e/f 644 0 bare", "5 d/ 755 0 ", "5 d/e/ 755 0 "}},
		"an owner":                    {root: with(owned), want: []string{"0 x 644 7 same"}},
		"a mode":                      {root: with(testtar.File("x", "same", 0o600)), want: []string{"0 x 600 0 same"}},
		"a link":                      {root: with(testtar.Link("l", "x")), want: []string{"2 l 777 0 x"}},
		"a directory's mode":          {root: with(testtar.Dir("d/e/", 0o1700)), want: []string{"5 d/ 755 0 ", "5 d/e/ 1700 0 "}},
		"new":                         {root: with(directory("n/"), directory("n/o/"), file("n/o/f", "x")), want: []string{"0 n/o/f 644 0 x", "5 n/ 755 0 ", "5 n/o/ 755 0 "}},
		"new for a mount":             {root: with(directory("n/"), directory("n/o/"), untold("n/o/m"))},
		"new beside a mount":          {root: with(directory("n/"), untold("n/m"), file("n/f", "")), want: []string{"0 n/f 644 0 ", "5 n/ 755 0 "}},
		"deleted":                     {root: without("d/e/f", "x"), want: []string{"3 d/e/f 0 0 ", "3 x 0 0 ", "5 d/ 755 0 ", "5 d/e/ 755 0 "}},
		"a deleted directory":         {root: without("d/e", "d/e/f"), want: []string{"3 d/e 0 0 ", "5 d/ 755 0 "}},
		"a directory that is a file":  {root: append(without("d", "d/e", "d/e/f", "d/g"), file("d", "x")), want: []string{"0 d 644 0 x"}},
		"a file that is a directory":  {root: append(without("x"), directory("x/"), file("x/y", "")), want: []string{"0 x/y 644 0 ", "5 x/ 755 0 "}},
		"a closed directory":          {root: append(without("d/g"), untold("d"))},
		"a time, unsent":              {root: with(touched), err: ErrUnsent},
		"a length, unsent":            {root: with(now(file("x", "longer"))), err: ErrUnsent},
		"unknown, unsent":             {root: with(now(file("y", ""))), err: ErrUnsent},
		"a directory, unsent":         {root: with(now(file("m/x", "")), now(file("m", ""))), err: ErrUnsent},
		"too large":                   {root: with(file("big", strings.Repeat("x", 101))), err: backend.ErrImageInvalid},
		"out of it":                   {root: with(file("../x", "")), err: backend.ErrImageInvalid},
		"a device":                    {root: with(member(tar.TypeChar, "x")), err: backend.ErrImageInvalid},
	} {
		t.Run(name, func(t *testing.T) {
			tree := treeOf(t, base)
			var out bytes.Buffer
			err := tree.Changes(t.Context(), bytes.NewReader(testtar.Archive(t, c.root...)), &out, t.TempDir(), 100)
			if !errors.Is(err, c.err) || err != nil && c.err == nil {
				t.Fatalf("%v, want %v", err, c.err)
			}
			if err != nil {
				return
			}
			var got []string
			for in := tar.NewReader(&out); ; {
				h, err := in.Next()
				if err != nil {
					break
				}
				content, _ := io.ReadAll(in)
				got = append(got, fmt.Sprintf("%c %s %o %d %s%s", h.Typeflag, h.Name, h.Mode, h.Uid, content, h.Linkname))
			}
			slices.Sort(got)
			if !slices.Equal(got, c.want) {
				t.Errorf("got  %q\nwant %q", got, c.want)
			}
		})
	}
}

// FuzzChanges: whatever comes as a root file system, comparing it ends, and what differs is the tar of a layer.
func FuzzChanges(f *testing.F) {
	f.Add(testtar.Archive(f, directory("d/"), file("d/f", "y"), now(file("x", "x")), untold("m"), testtar.Link("l", "d")))
	f.Add(testtar.Archive(f, file("d", "x"), file("d/f", ""), directory("d/")))
	f.Add(testtar.Archive(f, untold("d"), directory("d/"), file("d/n/.wh.x", "")))
	dir := f.TempDir()
	tree := &Tree{map[string]treeFile{}}
	if err := tree.add(0, bytes.NewReader(testtar.Archive(f, directory("d/"), file("d/f", "x"), file("x", "x"), testtar.Link("l", "x"), file("m/f", ""))), newBudget(DefaultLimits)); err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		l, err := NewLayer(dir)
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
		l.Deletions, l.Owners, l.MaxBytes = true, true, 1<<20
		var out bytes.Buffer
		if tree.Changes(t.Context(), bytes.NewReader(data), &out, dir, 1<<20) != nil || l.Add(t.Context(), &out, "/") != nil {
			return
		}
		var layer bytes.Buffer
		if err := l.write(t.Context(), &layer); err != nil {
			if !errors.Is(err, backend.ErrImageInvalid) {
				t.Error(err)
			}
			return
		}
		if err := tree.copy().add(1, &layer, newBudget(DefaultLimits)); err != nil {
			t.Errorf("the layer cannot be laid over the image: %v", err)
		}
	})
}

func (t *Tree) copy() *Tree {
	all := &Tree{map[string]treeFile{}}
	for name, f := range t.files {
		all.files[name] = f
	}
	return all
}
