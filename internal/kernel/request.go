package kernel

import (
	"encoding/base64"
	"encoding/json"
)

// The operations of a [Request].
const (
	OpRun       = "run"
	OpInput     = "input"
	OpInstalled = "installed"
	OpInterrupt = "interrupt"
	OpComplete  = "complete"
	OpInspect   = "inspect"
	OpVariables = "variables"
	OpReset     = "reset"
)

// A Request is what the driver is asked or told.
type Request struct {
	Op   string `json:"op"`
	ID   uint64 `json:"id"`
	Code string `json:"code,omitempty"`
	// Cursor counts the code points of Code before the cursor.
	Cursor *int `json:"cursor,omitempty"`
	// Mark is what the driver writes to stdout and stderr, after a NUL, when the
	// cell has ended.
	Mark string `json:"mark,omitempty"`
	// Stdin tells that input events are answered with more than EOF.
	Stdin bool `json:"stdin,omitempty"`
	// Text and EOF answer an input event.
	Text string `json:"text,omitempty"`
	EOF  bool   `json:"eof,omitempty"`
	// Interrupted tells that the answer takes the place of an interrupt.
	Interrupted bool `json:"interrupted,omitempty"`
	// Dirs and Error answer an install event.
	Dirs  []string `json:"dirs,omitempty"`
	Error string   `json:"error,omitempty"`
}

// Line encodes a request with its newline. With encoded, code, text and error travel as
// base64 in fields whose names end in 64.
func (r Request) Line(encoded bool) []byte {
	var v any = r
	if encoded {
		e := struct {
			Request
			Code64  string `json:"code64,omitempty"`
			Text64  string `json:"text64,omitempty"`
			Error64 string `json:"error64,omitempty"`
		}{r, encode(r.Code), encode(r.Text), encode(r.Error)}
		e.Code, e.Text, e.Error = "", "", ""
		v = e
	}
	// A struct of strings and numbers always has a JSON form.
	b, _ := json.Marshal(v)
	return append(b, '\n')
}

func encode(s string) string { return base64.StdEncoding.EncodeToString([]byte(s)) }
