// Package plainjson writes JSON that is not for a web page: in code and text, each <, > and & would be six bytes.
package plainjson

import (
	"bytes"
	"encoding/json"
)

// Marshal is json.Marshal that leaves <, > and & as they are.
func Marshal(v any) ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	err := enc.Encode(v)
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), err
}

// Inside is a text within the quotes of a JSON string.
func Inside(text string) string {
	b, _ := Marshal(text) // a string always can be
	return string(b[1 : len(b)-1])
}
