package kernel

import (
	"encoding/json"
	"errors"
	"fmt"
)

// The kinds of an [Event].
const (
	EventReady   = "ready"
	EventInput   = "input"
	EventInstall = "install"
	EventDone    = "done"
	EventReply   = "reply"
)

// The states of a cell that is done.
const (
	DoneOK          = "ok"
	DoneError       = "error"
	DoneInterrupted = "interrupted"
	DoneExit        = "exit"
)

// An Event is what the driver tells.
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

// errProtocol is what every error of decoding is.
var errProtocol = errors.New("the kernel's driver broke its protocol")

// Decode decodes and checks one line.
func Decode(line []byte) (Event, error) {
	line, err := plain(line)
	if err != nil {
		return Event{}, fmt.Errorf("%w: %w", errProtocol, err)
	}
	var e Event
	if err := json.Unmarshal(line, &e); err != nil {
		return Event{}, fmt.Errorf("%w: %w", errProtocol, err)
	}
	if err := e.check(); err != nil {
		return Event{}, fmt.Errorf("%w: %w", errProtocol, err)
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
	case EventReady, EventInput:
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
		return errors.New("a cell with an error and none told")
	}
	return nil
}

func decodeError(raw json.RawMessage, v any) error {
	if len(raw) == 0 {
		return nil
	}
	return json.Unmarshal(raw, v)
}
