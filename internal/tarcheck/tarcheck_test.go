package tarcheck

import (
	"archive/tar"
	"bytes"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/llmsandbox/llmsandbox/internal/testtar"
)

func TestSplit(t *testing.T) {
	for name, c := range map[string]struct {
		want []string
		err  error
	}{
		"":                                      {},
		"./":                                    {},
		"a":                                     {want: []string{"a"}},
		"./a//b/./c/":                           {want: []string{"a", "b", "c"}},
		"..a/b..":                               {want: []string{"..a", "b.."}},
		"/a":                                    {err: ErrUnsafe},
		"//":                                    {err: ErrUnsafe},
		"..":                                    {err: ErrUnsafe},
		"a/../b":                                {err: ErrUnsafe},
		"a\x00b":                                {err: ErrUnsafe},
		strings.Repeat("a", MaxName+1):          {err: ErrUnsafe},
		strings.Repeat("d/", MaxDepth) + "name": {err: ErrTooLarge},
	} {
		got, err := Split(name)
		if diff := cmp.Diff(c.want, got); diff != "" || !errors.Is(err, c.err) {
			t.Errorf("%.50q: got %v, %v, want %v, %v", name, got, err, c.want, c.err)
		}
	}
}

// TestReadTakes shows which kinds of members are made, and that the others are left out, or
// end the reading where nothing may be.
func TestReadTakes(t *testing.T) {
	all := testtar.Archive(t, testtar.Filled("", []tar.Header{
		{Typeflag: tar.TypeDir, Name: "d/"}, {Typeflag: tar.TypeReg, Name: "f"},
		{Typeflag: tar.TypeSymlink, Name: "l", Linkname: "../anything"}, {Typeflag: tar.TypeSymlink, Name: "far", Linkname: strings.Repeat("x", MaxName+1)},
		{Typeflag: tar.TypeLink, Name: "h", Linkname: "./d/f"}, {Typeflag: tar.TypeLink, Name: "up", Linkname: "../f"}, {Typeflag: tar.TypeLink, Name: "top", Linkname: "."},
		{Typeflag: tar.TypeChar, Name: "device"}, {Typeflag: tar.TypeFifo, Name: "fifo"}, {Typeflag: tar.TypeCont, Name: "contiguous"},
	}...)...)
	for name, c := range map[string]struct {
		o       Options
		want    []string
		skipped int
	}{
		"plain":      {Options{}, []string{"d/", "f"}, 8},
		"links":      {Options{Links: true}, []string{"d/", "f", "l"}, 7},
		"hard links": {Options{HardLinks: true}, []string{"d/", "f", "h"}, 7},
	} {
		t.Run(name, func(t *testing.T) {
			var got []string
			skipped := 0
			make := func(m Member, _ io.Reader) error { got = append(got, m.Name); return nil }
			c.o.Skip = func(_ string, why error) {
				if skipped++; !errors.Is(why, ErrUnsafe) {
					t.Errorf("left out: %v, want ErrUnsafe", why)
				}
			}
			if err := Read(bytes.NewReader(all), c.o, make); err != nil || skipped != c.skipped {
				t.Errorf("%d left out, %v, want %d", skipped, err, c.skipped)
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("differs (-want +got):\n%s", diff)
			}
			c.o.Skip = nil
			var member *MemberError
			if err := Read(bytes.NewReader(all), c.o, make); !errors.Is(err, ErrUnsafe) || !errors.As(err, &member) {
				t.Errorf("got %v, want a MemberError of %v", err, ErrUnsafe)
			}
		})
	}
}

// TestReadKeepsFailures: an error that is not about the archive is handed on as it is.
func TestReadKeepsFailures(t *testing.T) {
	failed := errors.New("the stream failed")
	data := testtar.Archive(t, testtar.File("f", strings.Repeat("x", 2000), 0o644))
	copied := func(_ Member, content io.Reader) error { _, err := io.Copy(io.Discard, content); return err }
	for _, n := range []int64{0, 100, 1000} {
		r := io.MultiReader(io.LimitReader(bytes.NewReader(data), n), failing{failed})
		if err := Read(r, Options{}, copied); !errors.Is(err, failed) || errors.Is(err, ErrDamaged) {
			t.Errorf("after %d bytes: got %v, want %v alone", n, err, failed)
		}
	}
	for _, n := range []int64{0, 100, 1000, 2560} {
		if err := Read(io.LimitReader(bytes.NewReader(data), n), Options{}, copied); !errors.Is(err, ErrDamaged) {
			t.Errorf("cut to %d bytes: got %v, want %v", n, err, ErrDamaged)
		}
	}
}

type failing struct{ err error }

func (f failing) Read([]byte) (int, error) { return 0, f.err }
