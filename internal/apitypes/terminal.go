package apitypes

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
)

// Subprotocols of WebSockets.
const (
	// TerminalProtocol is that of a terminal: binary messages are what is typed and shown, and text messages are a TerminalInput or TerminalEvent.
	TerminalProtocol = "llmsandbox.terminal"
	// KeyProtocol and a key after it are offered by clients that can set no other header, such as web pages. A server never answers with it.
	KeyProtocol = "llmsandbox.key."
)

// MaxTerminalMessage bounds a message of a client of a terminal, in bytes.
const MaxTerminalMessage = 64 << 10

// MaxTerminalSize bounds the columns and the rows of a terminal.
const MaxTerminalSize = 1000

// A TerminalInput is what a client has to say to a terminal beside what is typed.
type TerminalInput struct {
	Resize *TerminalSize `json:"resize"`
}

// A TerminalSize is one in characters.
type TerminalSize struct {
	Cols uint16 `json:"cols"`
	Rows uint16 `json:"rows"`
}

// A TerminalEvent is what a server says of a terminal beside what it shows: the number of its process first, and at the end what became of it, or what
// went wrong.
type TerminalEvent struct {
	Process uint64          `json:"process,omitempty"`
	Result  json.RawMessage `json:"result,omitempty"`
	Problem *Problem        `json:"problem,omitempty"`
}

// ParseTerminalInput reads a text message of a client.
func ParseTerminalInput(text []byte) (TerminalInput, error) {
	var in TerminalInput
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	if err := d.Decode(&in); err != nil {
		return in, fmt.Errorf("a text message: %w", err)
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return in, errors.New("a text message: there is more behind its object")
	}
	if in.Resize == nil {
		return in, errors.New("a text message: it has no resize, and there is nothing else: what is typed goes in binary messages")
	}
	if s := in.Resize; s.Cols < 1 || s.Rows < 1 || s.Cols > MaxTerminalSize || s.Rows > MaxTerminalSize {
		return in, fmt.Errorf("resize: cols and rows are from 1 to %d", MaxTerminalSize)
	}
	return in, nil
}
