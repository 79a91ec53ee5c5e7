package cli

import (
	"bytes"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	"github.com/llmsandbox/llmsandbox"
)

// The values of --text-errors: what becomes of bytes that are not UTF-8. The names are those
// of Python's codec error handlers.
const (
	textReplace         = "replace"          // each becomes U+FFFD
	textIgnore          = "ignore"           // each is dropped
	textBackslash       = "backslashreplace" // each becomes \xNN
	textSurrogateEscape = "surrogateescape"  // each becomes a lone surrogate, U+DC80 to U+DCFF
	textStrict          = "strict"           // the first one is an error
)

var errNotText = errors.New("output is not valid UTF-8")

func checkTextErrors(mode string) error {
	switch mode {
	case textReplace, textIgnore, textBackslash, textSurrogateEscape, textStrict:
		return nil
	}
	return fmt.Errorf("--text-errors %q: %w: use replace, ignore, backslashreplace, surrogateescape or strict", mode, llmsandbox.ErrInvalid)
}

// textLiteral returns s as a JSON string.
func textLiteral(s, mode string) (string, error) {
	var b strings.Builder
	b.WriteByte('"')
	for i, start := 0, 0; i <= len(s); {
		r, n := utf8.DecodeRuneInString(s[i:])
		if r != utf8.RuneError || n > 1 {
			i += n
			continue
		}
		writeValid(&b, s[start:i])
		if i == len(s) {
			break
		}
		switch mode {
		case textReplace:
			b.WriteString("\ufffd")
		case textBackslash:
			fmt.Fprintf(&b, `\\x%02x`, s[i])
		case textSurrogateEscape:
			fmt.Fprintf(&b, `\udc%02x`, s[i])
		case textStrict:
			return "", fmt.Errorf("byte 0x%02x at offset %d: %w: choose another --text-errors", s[i], i, errNotText)
		}
		i++
		start = i
	}
	b.WriteByte('"')
	return b.String(), nil
}

// writeValid writes valid text as the inside of a JSON string.
func writeValid(b *strings.Builder, text string) {
	var literal bytes.Buffer
	enc := json.NewEncoder(&literal)
	enc.SetEscapeHTML(false)
	_ = enc.Encode(text)                          // a string always can be
	b.Write(literal.Bytes()[1 : literal.Len()-2]) // without quotes and newline
}

// writeResult writes a result as JSON. encoding/json has no way to write lone surrogates, so
// the output goes where a text was that nothing else can contain.
func writeResult(w io.Writer, res llmsandbox.Result, mode string) error {
	var put []string
	for _, s := range []*string{&res.Stdout, &res.Stderr} {
		literal, err := textLiteral(*s, mode)
		if err != nil {
			return err
		}
		*s = rand.Text()
		put = append(put, `"`+*s+`"`, literal)
	}
	var out strings.Builder
	if err := encodeJSON(&out, res); err != nil {
		return err
	}
	_, err := strings.NewReplacer(put...).WriteString(w, out.String())
	return err
}
