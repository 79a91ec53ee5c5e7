package llmsandbox

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestCaptureKeepsTheFirstBytes(t *testing.T) {
	var live bytes.Buffer
	c := newCapture(5, &live)
	for _, p := range []string{"abc", "def", "g"} {
		if n, err := c.Write([]byte(p)); n != len(p) || err != nil {
			t.Fatalf("Write = %d, %v, want n = %d, no error", n, err, len(p))
		}
	}
	if c.text() != "abcde" || !c.cut() || c.written() != 7 || live.String() != "abcdefg" {
		t.Errorf("kept %q, cut %v, written %d, live %q, want text = \"abcde\", c.cut() = true, written = 7, live = \"abcdefg\"", c.text(), c.cut(), c.written(), live.String())
	}
}

func TestCaptureExactlyFull(t *testing.T) {
	c := newCapture(3, nil)
	_, _ = c.Write([]byte("abc"))
	if c.text() != "abc" || c.cut() {
		t.Errorf("kept %q, cut %v, want text = \"abc\", c.cut() = false", c.text(), c.cut())
	}
}

func TestCaptureIsBoundedWithoutALimit(t *testing.T) {
	c := newCapture(0, nil)
	chunk := bytes.Repeat([]byte("x"), 1<<20)
	for range 70 {
		_, _ = c.Write(chunk)
	}
	if len(c.text()) != keepAtMost || !c.cut() {
		t.Errorf("kept %d bytes, cut %v, want len(c.text()) = %v, c.cut() = true", len(c.text()), c.cut(), keepAtMost)
	}
}

type badWriter struct{ short, panics bool }

func (w badWriter) Write(p []byte) (int, error) {
	switch {
	case w.panics:
		panic("no")
	case w.short:
		return 0, nil
	}
	return 0, errors.New("no")
}

func TestCaptureSurvivesItsWriter(t *testing.T) {
	for _, w := range []badWriter{{}, {short: true}, {panics: true}} {
		c := newCapture(100, w)
		for range 3 {
			if n, err := c.Write([]byte("ab")); n != 2 || err != nil {
				t.Fatalf("Write = %d, %v, want n = 2, no error", n, err)
			}
		}
		if c.text() != strings.Repeat("ab", 3) {
			t.Errorf("kept %q, want %.60v", c.text(), strings.Repeat("ab", 3))
		}
		if err := captureErrors(c, newCapture(1, nil)); !errors.Is(err, ErrOutput) {
			t.Errorf("%+v: %v, want ErrOutput", w, err)
		}
	}
}

func TestCaptureKeepsEveryByteInOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		limit := rapid.Int64Range(1, 3*smallestPiece).Draw(t, "limit")
		c := newCapture(limit, nil)
		var all strings.Builder
		for i, size := range rapid.SliceOfN(rapid.IntRange(0, 2*smallestPiece), 0, 8).Draw(t, "sizes") {
			p := bytes.Repeat([]byte{byte('a' + i)}, size)
			if n, err := c.Write(p); n != size || err != nil {
				t.Fatalf("Write: %d, %v, want n = %d, no error", n, err, size)
			}
			all.Write(p)
		}
		want := all.String()
		cut := int64(len(want)) > limit
		if cut {
			want = want[:limit]
		}
		if c.text() != want || c.cut() != cut || c.written() != int64(all.Len()) {
			t.Fatalf("kept %d of %d bytes, cut %v; want %d, %v", len(c.text()), c.written(), c.cut(), len(want), cut)
		}
	})
}

func BenchmarkCapture(b *testing.B) {
	frame := bytes.Repeat([]byte("x"), 16<<10)
	b.SetBytes(8 << 20)
	b.ReportAllocs()
	for b.Loop() {
		c := newCapture(0, nil)
		for range (8 << 20) / len(frame) {
			_, _ = c.Write(frame)
		}
		if len(c.text()) != 8<<20 {
			b.Fatalf("lost some: len(c.text()) = %v, want 8 MiB", len(c.text()))
		}
	}
}
