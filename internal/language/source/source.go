// Package source cleans up the text of programs as models and editors hand it over.
package source

import (
	"bytes"
	"encoding/binary"
	"errors"
	"unicode/utf16"
)

// ErrUTF16 means that a text that announces UTF-16 is not valid.
var ErrUTF16 = errors.New("the code begins with a UTF-16 mark but has an odd number of bytes: save it as UTF-8")

// Clean returns code as UTF-8 without a byte order mark. Line ends become LF only
// when every one of them is CRLF: mixed ones may be meant, inside a string.
// NUL bytes stay, for the interpreter to report with its own message and line.
func Clean(code []byte) ([]byte, error) {
	code, err := decode(code)
	if err != nil {
		return nil, err
	}
	crlf := bytes.Count(code, []byte("\r\n"))
	if crlf > 0 && crlf == bytes.Count(code, []byte("\n")) && crlf == bytes.Count(code, []byte("\r")) {
		code = bytes.ReplaceAll(code, []byte("\r\n"), []byte("\n"))
	}
	return code, nil
}

func decode(code []byte) ([]byte, error) {
	var order binary.ByteOrder
	switch {
	case bytes.HasPrefix(code, []byte("\xef\xbb\xbf")):
		return code[3:], nil
	case bytes.HasPrefix(code, []byte("\xff\xfe")):
		order = binary.LittleEndian
	case bytes.HasPrefix(code, []byte("\xfe\xff")):
		order = binary.BigEndian
	default:
		return code, nil
	}
	if len(code)%2 != 0 {
		return nil, ErrUTF16
	}
	units := make([]uint16, 0, len(code)/2)
	for i := 2; i < len(code); i += 2 {
		units = append(units, order.Uint16(code[i:]))
	}
	return []byte(string(utf16.Decode(units))), nil
}

// Dedent removes the white space that all lines which are not blank begin with, so
// that a snippet cut out of a document runs. Other code is returned as it is.
func Dedent(code []byte) []byte {
	lines := bytes.Split(code, []byte("\n"))
	var indent []byte
	for i, seen := 0, false; i < len(lines); i++ {
		rest := bytes.TrimLeft(lines[i], " \t")
		if len(bytes.TrimSpace(rest)) == 0 {
			continue
		}
		own := lines[i][:len(lines[i])-len(rest)]
		if !seen {
			indent, seen = own, true
		}
		indent = indent[:common(indent, own)]
		if len(indent) == 0 {
			return code
		}
	}
	if len(indent) == 0 {
		return code
	}
	for i, line := range lines {
		lines[i] = line[common(line, indent):]
	}
	return bytes.Join(lines, []byte("\n"))
}

// common is the length of the longest common prefix.
func common(a, b []byte) int {
	n := 0
	for n < len(a) && n < len(b) && a[n] == b[n] {
		n++
	}
	return n
}
