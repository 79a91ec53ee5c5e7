package engine

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"
)

func frame(kind byte, content string) string {
	var h [frameHeader]byte
	h[0] = kind
	binary.BigEndian.PutUint32(h[4:], uint32(len(content)))
	return string(h[:]) + content
}

func TestStreamRead(t *testing.T) {
	long := strings.Repeat("w", maxWords)
	for _, c := range []struct {
		name, in, out, said string
		fails               error
	}{
		{"nothing", "", "", "", nil},
		{"stdout", frame(frameStdout, "ab") + frame(frameStdout, "c"), "abc", "", nil},
		{"empty frames", frame(frameStdout, "") + frame(frameStderr, "") + frame(frameStdout, "a"), "a", "", nil},
		{"stderr between", frame(frameStdout, "a") + frame(frameStderr, "oh") + frame(frameStdout, "b"), "ab", "oh", io.ErrUnexpectedEOF},
		{"last words", frame(frameSystem, "gone"), "", "gone", io.ErrUnexpectedEOF},
		{"too many words", frame(frameStderr, long+"more") + frame(frameStdout, "a"), "a", long, io.ErrUnexpectedEOF},
		{"cut header", frame(frameStdout, "a")[:5], "", "", io.ErrUnexpectedEOF},
		{"cut content", frame(frameStdout, "abc")[:frameHeader+1], "a", "", io.ErrUnexpectedEOF},
		{"cut words", frame(frameStderr, "abc")[:frameHeader+1], "", "a", io.ErrUnexpectedEOF},
		{"unknown kind", frame(9, "a"), "", "", errOutOfStep},
		{"text", "HTTP/1.1 200 OK", "", "", errOutOfStep},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := &stream{in: iotest.OneByteReader(strings.NewReader(c.in))}
			out, err := io.ReadAll(s)
			if string(out) != c.out || s.Said() != c.said || !errors.Is(err, c.fails) {
				t.Errorf("%q, said %.20q, %v; want %q, %.20q, %v", out, s.Said(), err, c.out, c.said, c.fails)
			}
		})
	}
}

func FuzzStreamRead(f *testing.F) {
	f.Add([]byte(frame(frameStdout, "ab") + frame(frameStderr, "oh")))
	f.Add([]byte(frame(frameStderr, strings.Repeat("x", 100))[:20]))
	f.Add([]byte("\x01\x00\x00\x00\xff\xff\xff\xff"))
	f.Fuzz(func(t *testing.T, in []byte) {
		s := &stream{in: bytes.NewReader(in)}
		out, _ := io.ReadAll(s)
		if len(out)+len(s.Said()) > len(in) {
			t.Errorf("%d bytes of output and %d of words out of %d", len(out), len(s.Said()), len(in))
		}
	})
}
