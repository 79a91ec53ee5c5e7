package service

import (
	"bytes"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"
)

// TestOutput: whatever is written and from wherever it is read, what comes is what was written, in pieces that are whole characters, and what is
// missing is told.
func TestOutput(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		o := newOutput()
		before := rapid.IntRange(0, 3).Draw(t, "before") // bytes that are not kept
		o.begin([2]stream{{start: int64(before)}, {}})
		var all bytes.Buffer
		all.WriteString(strings.Repeat("?", before))
		var from Offsets
		var got bytes.Buffer
		var runes []rune
		read := func() {
			for {
				piece, news := o.Next(from)
				if piece == nil {
					if (news == nil) != o.ended {
						t.Fatalf("ended: %t, and there can be more: %t", o.ended, news != nil)
					}
					return
				}
				if piece.Stderr {
					t.Fatalf("piece %+v, want none of stderr", piece)
				}
				got.WriteString(strings.Repeat("?", int(piece.Offset-from[0])))
				got.Write(piece.Data)
				runes = append(runes, []rune(string(piece.Data))...)
				from[0] = piece.Offset + int64(len(piece.Data))
			}
		}
		for _, text := range rapid.SliceOf(rapid.SampledFrom([]string{"a", "é", "\xe2", "\x82\xac", "\xff", "€uro", strings.Repeat("x", maxPiece-1)})).Draw(t, "texts") {
			if _, err := (outputWriter{o, 0}).Write([]byte(text)); err != nil {
				t.Fatal(err)
			}
			all.WriteString(text)
			if rapid.Bool().Draw(t, "read") {
				read()
			}
		}
		o.end(Offsets{int64(before)}, all.Bytes()[before:], nil)
		read()
		if !bytes.Equal(got.Bytes(), all.Bytes()) {
			t.Fatalf("read %d bytes, want the %d that were written", got.Len(), all.Len())
		}
		if want := []rune(all.String()[before:]); !slices.Equal(runes, want) {
			t.Fatalf("the characters of the pieces are %q, want %q", string(runes), string(want))
		}
	})
}

// TestOutputIsBounded: of what a program writes the last is kept, and what is gone is a gap.
func TestOutputIsBounded(t *testing.T) {
	o := newOutput()
	var all bytes.Buffer
	for i := range 100 {
		part := bytes.Repeat([]byte{'a' + byte(i%26)}, 100_000)
		all.Write(part)
		if _, err := (outputWriter{o, 1}).Write(part); err != nil {
			t.Fatal(err)
		}
		if kept := len(o.streams[1].data); kept > 2*keptOutput+len(part) {
			t.Fatalf("%d bytes are kept, want at most twice %d", kept, keptOutput)
		}
	}
	piece, _ := o.Next(Offsets{})
	if piece == nil || !piece.Stderr || piece.Offset > int64(all.Len()-keptOutput) || !bytes.HasPrefix(all.Bytes()[piece.Offset:], piece.Data) {
		t.Errorf("%+v, want the first that is kept of stderr", piece)
	}
	if piece, news := o.Next(Offsets{0, int64(all.Len()) + 1}); piece != nil || news == nil {
		t.Errorf("beyond the end: %+v, want nothing yet", piece)
	}
}

// FuzzWholeRunes: what is left out at the end of a text is the beginning of a character.
func FuzzWholeRunes(f *testing.F) {
	for _, seed := range []string{"", "a", "é", "a\xc3", "\xe2\x82", "\xf0\x9f\x98", "\xff", "\x80\x80\x80\x80", "a\xed\xa0"} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		n := WholeRunes(text)
		if rest := text[n:]; len(rest) >= utf8.UTFMax || utf8.FullRune(rest) {
			t.Errorf("%q is left of %q, want less than a character", rest, text)
		}
	})
}
