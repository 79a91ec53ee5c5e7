package llmsandbox

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// TextErrors says what [DecodeText] does with bytes that are not UTF-8. The names
// are those of Python's codec error handlers.
type TextErrors string

// The ways.
const (
	TextReplace         TextErrors = "replace"          // each becomes U+FFFD
	TextIgnore          TextErrors = "ignore"           // each is dropped
	TextBackslash       TextErrors = "backslashreplace" // each becomes \xNN
	TextSurrogateEscape TextErrors = "surrogateescape"  // each becomes U+DC80 + low bits, as its three bytes
	TextStrict          TextErrors = "strict"           // the first one is an error
)

// DecodeText returns s as text. With TextSurrogateEscape the result round-trips
// through [EncodeText] but is itself not valid UTF-8. With TextStrict, invalid
// input fails with an error that wraps ErrDecode and names the first bad byte and
// its offset.
func DecodeText(s string, mode TextErrors) (string, error) {
	switch mode {
	case TextReplace, TextIgnore, TextBackslash, TextSurrogateEscape, TextStrict:
	default:
		return "", fmt.Errorf("text errors %q: %w: use replace, ignore, backslashreplace, surrogateescape or strict", string(mode), ErrInvalid)
	}
	if utf8.ValidString(s) {
		return s, nil
	}
	var b strings.Builder
	for i := 0; i < len(s); {
		r, n := utf8.DecodeRuneInString(s[i:])
		if r != utf8.RuneError || n > 1 {
			b.WriteString(s[i : i+n])
			i += n
			continue
		}
		switch mode {
		case TextReplace:
			b.WriteRune(utf8.RuneError)
		case TextBackslash:
			fmt.Fprintf(&b, `\x%02x`, s[i])
		case TextSurrogateEscape:
			low := s[i] - 0x80
			b.Write([]byte{0xed, 0xb2 + low>>6, 0x80 | low&0x3f})
		case TextStrict:
			return "", fmt.Errorf("byte 0x%02x at offset %d: %w", s[i], i, ErrDecode)
		}
		i++
	}
	return b.String(), nil
}

// EncodeText undoes DecodeText with TextSurrogateEscape.
func EncodeText(s string) string {
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] == 0xed && i+2 < len(s) && (s[i+1] == 0xb2 || s[i+1] == 0xb3) && s[i+2]&0xc0 == 0x80 {
			b.WriteByte(0x80 + (s[i+1]-0xb2)<<6 | s[i+2]&0x3f)
			i += 2
			continue
		}
		b.WriteByte(s[i])
	}
	return b.String()
}
