package kernel

import (
	"bufio"
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
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

// A Request is one line to the driver.
type Request struct {
	Op   string `json:"op"`
	ID   uint64 `json:"id"`
	Code string `json:"code,omitempty"`
	// Cursor counts the code points of Code before the cursor.
	Cursor *int `json:"cursor,omitempty"`
	// Mark is what the driver writes to stdout and stderr, after a NUL, when the
	// cell has ended.
	Mark string `json:"mark,omitempty"`
	// Stdin means that input events are answered with more than EOF.
	Stdin bool `json:"stdin,omitempty"`
	// Text and EOF answer an input event.
	Text string `json:"text,omitempty"`
	EOF  bool   `json:"eof,omitempty"`
	// Interrupted means that the answer takes the place of an interrupt.
	Interrupted bool `json:"interrupted,omitempty"`
	// These are of a program in place of a cell, for an interpreter that was started ahead: the
	// file that the code is written to, the working directory, further arguments, variables to
	// set, a file that gets the time of the program's begin, and, for one that was forked, the directory
	// of what captures its artifacts. Keep is 1 for a kernel's driver, which keeps descriptors 3 and 4; Input is 1 where standard input is not empty.
	File    string            `json:"file,omitempty"`
	Dir     string            `json:"dir,omitempty"`
	Args    []string          `json:"args,omitempty"`
	Env     map[string]string `json:"env,omitempty"`
	Touch   string            `json:"touch,omitempty"`
	Support string            `json:"support,omitempty"`
	Keep    int               `json:"keep,omitempty"`
	Input   int               `json:"input,omitempty"`
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

// The kinds of an [Event].
const (
	EventReady   = "ready"
	EventInput   = "input"
	EventInstall = "install"
	EventDone    = "done"
	EventReply   = "reply"
	EventBegun   = "begun" // of an interpreter that was started ahead: it has become the program
)

// The states of a cell that is done.
const (
	DoneOK          = "ok"
	DoneError       = "error"
	DoneInterrupted = "interrupted"
	DoneExit        = "exit"
)

// An Event is one line from the driver.
type Event struct {
	Event string `json:"event"`
	// ID is the request's that it belongs to; 0 with EventReady.
	ID uint64 `json:"id"`

	// With EventReady.
	Language string `json:"language"`
	Version  string `json:"version"`
	Flavor   string `json:"flavor"`

	// With EventInput.
	Prompt   string `json:"prompt"`
	Password bool   `json:"password"`

	// With EventInstall.
	Libraries []string `json:"libraries"`

	// With EventDone.
	Status    string            `json:"status"`
	Count     int               `json:"count"`
	Value     map[string]string `json:"value"` // by media type; binary ones as base64
	Failure   *Failure          `json:"-"`
	ExitCode  *int              `json:"exit_code"`
	StateLost bool              `json:"-"`

	// With EventReply.
	Matches   []string   `json:"matches"`
	Start     int        `json:"start"`
	End       int        `json:"end"`
	Text      string     `json:"text"`
	Variables []Variable `json:"variables"`
	// Refusal is why the request could not be answered.
	Refusal string `json:"-"`

	// Error is a Failure with EventDone and a string with EventReply.
	Error json.RawMessage `json:"error"`
	// Lost is StateLost where the driver says so; an exit loses the state unless it
	// says otherwise.
	Lost *bool `json:"state_lost"`
}

// A Failure is an error that a cell's code ended with.
type Failure struct {
	Name      string `json:"name"`
	Message   string `json:"message"`
	Traceback string `json:"traceback"`
}

// A Variable is one of a kernel's.
type Variable struct {
	Name  string `json:"name"`
	Type  string `json:"type"`
	Value string `json:"value"`
}

// ErrProtocol is what every error of decoding wraps.
var ErrProtocol = errors.New("the kernel's driver broke its protocol")

// Decode decodes and checks one line.
func Decode(line []byte) (Event, error) {
	line, err := plain(line)
	if err != nil {
		return Event{}, fmt.Errorf("%w: %w", ErrProtocol, err)
	}
	var e Event
	if err := json.Unmarshal(line, &e); err != nil {
		return Event{}, fmt.Errorf("%w: %w", ErrProtocol, err)
	}
	if err := e.check(); err != nil {
		return Event{}, fmt.Errorf("%w: %w", ErrProtocol, err)
	}
	e.StateLost = e.Status == DoneExit
	if e.Lost != nil {
		e.StateLost = *e.Lost
	}
	e.Error, e.Lost = nil, nil
	return e, nil
}

func (e *Event) check() error {
	switch e.Event {
	case EventReady, EventInput, EventBegun:
		return nil
	case EventInstall:
		if len(e.Libraries) == 0 {
			return errors.New("it asks for no library")
		}
		return nil
	case EventDone:
		return e.checkDone()
	case EventReply:
		if e.Start < 0 || e.End < e.Start {
			return fmt.Errorf("a reply about the place from %d to %d", e.Start, e.End)
		}
		return decodeError(e.Error, &e.Refusal)
	}
	return fmt.Errorf("an unknown event %.40q", e.Event)
}

func (e *Event) checkDone() error {
	switch e.Status {
	case DoneOK, DoneInterrupted, DoneError:
	case DoneExit:
		if e.ExitCode == nil {
			return errors.New("an exit without an exit code")
		}
	default:
		return fmt.Errorf("an unknown status %.40q", e.Status)
	}
	if e.ExitCode != nil && (*e.ExitCode < 0 || *e.ExitCode > 255) {
		return fmt.Errorf("an exit code of %d", *e.ExitCode)
	}
	if e.Count < 0 {
		return fmt.Errorf("a cell with number %d", e.Count)
	}
	if err := decodeError(e.Error, &e.Failure); err != nil {
		return err
	}
	if e.Status == DoneError && e.Failure == nil {
		return errors.New("a cell with an error and no description of it")
	}
	return nil
}

func decodeError(raw json.RawMessage, v any) error {
	if len(raw) == 0 {
		return nil
	}
	return json.Unmarshal(raw, v)
}

// MaxLine bounds a line in either direction, in bytes.
const MaxLine = 8 << 20

// A Reader reads events.
type Reader struct{ lines *bufio.Scanner }

// NewReader returns a reader of what a driver writes.
func NewReader(r io.Reader) *Reader {
	lines := bufio.NewScanner(r)
	lines.Buffer(make([]byte, 0, 4<<10), MaxLine)
	lines.Split(wholeLines)
	return &Reader{lines}
}

// wholeLines is bufio.ScanLines without a last line that has no end.
func wholeLines(data []byte, atEOF bool) (advance int, token []byte, err error) {
	if i := bytes.IndexByte(data, '\n'); i >= 0 {
		return i + 1, data[:i], nil
	}
	if atEOF {
		return len(data), nil, nil
	}
	return 0, nil, nil
}

// Next returns the next event, and io.EOF after the last one. A half line at the end
// is what a driver leaves that was killed, and no event.
func (r *Reader) Next() (Event, error) {
	if r.lines.Scan() {
		return Decode(r.lines.Bytes())
	}
	switch err := r.lines.Err(); {
	case errors.Is(err, bufio.ErrTooLong):
		return Event{}, fmt.Errorf("%w: a line of more than %d bytes", ErrProtocol, MaxLine)
	case err != nil:
		return Event{}, err
	}
	return Event{}, io.EOF
}

// plain returns the line with its fields named ...64 decoded into fields without the 64.
func plain(line []byte) ([]byte, error) {
	if !bytes.Contains(line, []byte(`64"`)) {
		return line, nil
	}
	var v any
	d := json.NewDecoder(bytes.NewReader(line))
	d.UseNumber()
	if err := d.Decode(&v); err != nil {
		return nil, err
	}
	if d.More() {
		return nil, fmt.Errorf("more than one value in a line")
	}
	if err := decodeFields(v); err != nil {
		return nil, err
	}
	return json.Marshal(v)
}

// decodeFields decodes in place.
func decodeFields(v any) error {
	switch v := v.(type) {
	case []any:
		for _, e := range v {
			if err := decodeFields(e); err != nil {
				return err
			}
		}
	case map[string]any:
		decoded := map[string]any{}
		for name, field := range v {
			short, encoded := strings.CutSuffix(name, "64")
			if !encoded {
				if err := decodeFields(field); err != nil {
					return err
				}
				continue
			}
			text, err := decodeText(field)
			if err != nil {
				return fmt.Errorf("field %.40q: %w", name, err)
			}
			delete(v, name)
			decoded[short] = text
		}
		for name, field := range decoded {
			v[name] = field
		}
	}
	return nil
}

// decodeText decodes a string, or a list or object of strings.
func decodeText(v any) (any, error) {
	switch v := v.(type) {
	case []any:
		for i := range v {
			s, err := decodeString(v[i])
			if err != nil {
				return nil, err
			}
			v[i] = s
		}
		return v, nil
	case map[string]any:
		for name := range v {
			s, err := decodeString(v[name])
			if err != nil {
				return nil, err
			}
			v[name] = s
		}
		return v, nil
	}
	return decodeString(v)
}

func decodeString(v any) (string, error) {
	s, ok := v.(string)
	if !ok {
		return "", fmt.Errorf("%T where base64 is due", v)
	}
	b, err := base64.StdEncoding.DecodeString(s)
	return string(b), err
}
