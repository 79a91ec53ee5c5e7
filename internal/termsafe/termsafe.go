// Package termsafe makes what a sandboxed program prints safe to show on a terminal.
//
// Escape sequences can retitle a window, write to the clipboard, or hide and forge
// text; bidirectional and zero-width characters can make text read as what it is
// not, and whole messages for a model can be written in characters that are not visible.
// All of them are left out. What remains is printable text, newlines, tabs, carriage
// returns and backspaces, and of what has no shape one emoji presentation selector
// behind a symbol or a digit, and one joiner behind a character.
package termsafe

import (
	"io"
	"unicode"
	"unicode/utf8"
)

// maxSequence bounds an escape sequence: one that does not end is not waited for
// for ever, so that it cannot swallow all later output.
const maxSequence = 4096

type state uint8

const (
	text      state = iota
	escape          // after ESC
	control         // in a CSI sequence, until its final byte
	str             // in an OSC, DCS, SOS, PM or APC string, until BEL or ST
	strEscape       // in a string, after ESC
	charset         // after ESC and an intermediate byte
)

// A Writer passes text on to W without control sequences. It keeps state between
// writes, so a sequence or character may be split over several. It is not safe for
// concurrent use.
type Writer struct {
	W io.Writer

	state   state
	length  int    // of the sequence so far
	before  rune   // the last character that was passed on
	partial []byte // the beginning of a character
}

// Write filters p and writes what is left in one call. It reports all of p as
// written unless W fails.
func (w *Writer) Write(p []byte) (int, error) {
	in := p
	if len(w.partial) > 0 {
		in = append(w.partial, p...)
		w.partial = nil
	}
	out := make([]byte, 0, len(in))
	for len(in) > 0 {
		r, n := utf8.DecodeRune(in)
		if r == utf8.RuneError && n == 1 && !utf8.FullRune(in) {
			w.partial = append(w.partial, in...)
			break
		}
		out = w.next(out, r, in[:n])
		in = in[n:]
	}
	if len(out) > 0 {
		if _, err := w.W.Write(out); err != nil {
			return 0, err
		}
	}
	return len(p), nil
}

// Close writes what is left of an unfinished character. It does not close W.
func (w *Writer) Close() error {
	if len(w.partial) == 0 {
		return nil
	}
	w.partial = nil
	_, err := io.WriteString(w.W, string(utf8.RuneError))
	return err
}

func (w *Writer) next(out []byte, r rune, raw []byte) []byte {
	if w.state != text {
		w.length += len(raw)
		if w.length > maxSequence {
			w.state = text
			return out
		}
	}
	switch w.state {
	case escape:
		switch {
		case r == '[':
			w.state = control
		case r == ']' || r == 'P' || r == 'X' || r == '^' || r == '_':
			w.state = str
		case r >= 0x20 && r <= 0x2f:
			w.state = charset
		case r == 0x1b: // starts over
		default:
			w.state = text
		}
		return out
	case control:
		if r == 0x1b {
			w.state = escape
		} else if r >= 0x40 && r <= 0x7e || r < 0x20 {
			w.state = text
		}
		return out
	case str:
		switch r {
		case 0x07, 0x9c:
			w.state = text
		case 0x1b:
			w.state = strEscape
		}
		return out
	case strEscape:
		if r == '\\' {
			w.state = text
		} else {
			w.state = str
		}
		return out
	case charset:
		if r < 0x20 || r > 0x2f {
			w.state = text
		}
		return out
	}
	return w.plain(out, r, raw)
}

func (w *Writer) plain(out []byte, r rune, raw []byte) []byte {
	switch {
	case r == '\n' || r == '\t' || r == '\r' || r == '\b' || r >= 0x20 && r < 0x7f:
	case r == 0x1b:
		w.state, w.length = escape, 0
		return out
	case r == 0x9b: // CSI in one character
		w.state, w.length = control, 0
		return out
	case r == 0x90 || r == 0x98 || r >= 0x9d && r <= 0x9f: // DCS, SOS, OSC, PM, APC
		w.state, w.length = str, 0
		return out
	case unicode.IsControl(r), deceptive(r), shapeless(r) && !fits(r, w.before):
		return out
	case r == utf8.RuneError:
		raw = []byte(string(utf8.RuneError)) // a stray byte could be a C1 control
	}
	w.before = r
	return append(out, raw...)
}

// String filters a whole string.
func String(s string) string {
	var b builder
	w := Writer{W: &b}
	// A builder does not fail.
	_, _ = w.Write([]byte(s))
	_ = w.Close()
	return string(b)
}

type builder []byte

func (b *builder) Write(p []byte) (int, error) {
	*b = append(*b, p...)
	return len(p), nil
}
