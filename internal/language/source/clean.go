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
