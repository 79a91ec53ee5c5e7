package image

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	"github.com/llmsandbox/llmsandbox/internal/termsafe"
)

const (
	maxLine = 1 << 20 // bytes of one message of an engine
	maxText = 2000    // bytes of foreign text in an error
)

// A message is one line of what an engine says while it pulls, loads or builds. The
// text in it comes from registries and programs.
type message struct {
	Stream   string `json:"stream"`
	Status   string `json:"status"`
	ID       string `json:"id"`
	Error    string `json:"error"`
	Progress struct {
		Current int64 `json:"current"`
		Total   int64 `json:"total"`
	} `json:"progressDetail"`
	ErrorDetail struct {
		Message string `json:"message"`
	} `json:"errorDetail"`
}

// An engineError is a failure with the engine's message, or a registry's that it passes on.
type engineError struct{ text string }

func (e engineError) Error() string { return e.text }

// eachMessage calls fn for every message until the stream ends. A message that reports a
// failure ends it with an engineError.
func eachMessage(r io.Reader, fn func(message)) error {
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, maxLine)
	for lines.Scan() {
		line := bytes.TrimSpace(lines.Bytes())
		if len(line) == 0 {
			continue
		}
		var m message
		if err := json.Unmarshal(line, &m); err != nil {
			return fmt.Errorf("the engine's answer is not understood (%w): %s", err, clean(string(line)))
		}
		if text := m.ErrorDetail.Message; text != "" {
			return engineError{clean(text)}
		}
		if m.Error != "" {
			return engineError{clean(m.Error)}
		}
		fn(m)
	}
	if errors.Is(lines.Err(), bufio.ErrTooLong) {
		return fmt.Errorf("the engine's answer has a line of over %d bytes", maxLine)
	}
	return lines.Err()
}

// clean makes foreign text fit for an error: short, and harmless on a terminal.
func clean(s string) string {
	if len(s) > maxText {
		cut := maxText
		for cut > 0 && !utf8.RuneStart(s[cut]) {
			cut--
		}
		s = s[:cut] + "..."
	}
	return strings.TrimSpace(termsafe.String(s))
}
