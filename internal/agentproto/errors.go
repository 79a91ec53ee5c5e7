package agentproto

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
)

// ErrStreamLost is wrapped by every [StreamError].
var ErrStreamLost = errors.New("the stream to the agent is lost")

// ErrCallEnded is returned when something is sent on a call that has ended.
var ErrCallEnded = errors.New("the call has ended")

// ErrWorkdir is what an [Error] with CodeWorkdir is.
var ErrWorkdir = errors.New("working directory cannot be used")

var errClosed = errors.New("it was closed by this end")

// errHungUp is the cause of a stream that Hangup ended.
var errHungUp = errors.New("this end hung up: what it sent was not read")

// A StreamError means that the stream ended while a call needed it. What became
// of that call at the other end is not known.
type StreamError struct {
	Err error // why the stream ended
}

func (e *StreamError) Error() string {
	switch {
	case e.Err == io.EOF:
		return ErrStreamLost.Error() + ": the other end closed it"
	case e.Err == io.ErrUnexpectedEOF:
		return ErrStreamLost.Error() + ": it ended in the middle of a frame"
	}
	return ErrStreamLost.Error() + ": " + e.Err.Error()
}

// Unwrap gives [ErrStreamLost] and the cause.
func (e *StreamError) Unwrap() []error { return []error{ErrStreamLost, e.Err} }

// A ProtocolError means that the other end broke the protocol. It ends the stream.
type ProtocolError struct {
	Msg string
}

func (e *ProtocolError) Error() string { return "agent protocol broken: " + e.Msg }

func protocolErrorf(format string, args ...any) *ProtocolError {
	return &ProtocolError{Msg: fmt.Sprintf(format, args...)}
}

// A VersionError means that the two ends speak different versions.
type VersionError struct {
	Ours, Theirs uint32
}

func (e *VersionError) Error() string {
	older, remedy := "this end", "update this program"
	if e.Theirs < e.Ours {
		older, remedy = "the other end", "recreate the sandbox or rebuild its image, so that it gets the current agent"
	}
	return fmt.Sprintf("agent protocol version mismatch: this end speaks version %d, the other end version %d; %s is older: %s",
		e.Ours, e.Theirs, older, remedy)
}

// An Error is a failure that the other end reports for one call. The stream and
// the other calls go on.
type Error struct {
	Code ErrorCode
	Msg  string
}

// Errorf makes an [Error].
func Errorf(code ErrorCode, format string, args ...any) error {
	return &Error{Code: code, Msg: fmt.Sprintf(format, args...)}
}

func (e *Error) Error() string {
	if e.Msg == "" {
		return e.Code.String()
	}
	return e.Msg
}

// Is makes errors.Is find the errors of io/fs, and ErrWorkdir, by their code.
func (e *Error) Is(target error) bool {
	switch e.Code {
	case CodeNotFound:
		return target == fs.ErrNotExist
	case CodeExists:
		return target == fs.ErrExist
	case CodePermission, CodeNotExecutable:
		return target == fs.ErrPermission
	case CodeWorkdir:
		return target == ErrWorkdir
	}
	return false
}

var codeNames = [...]string{
	CodeInternal:      "internal failure of the agent",
	CodeBadRequest:    "bad request",
	CodeUnsupported:   "not supported",
	CodeNotFound:      "not found",
	CodeExists:        "already exists",
	CodePermission:    "permission denied",
	CodeNotDir:        "not a directory",
	CodeIsDir:         "is a directory",
	CodeNotEmpty:      "directory not empty",
	CodeNoSpace:       "no space left within the disk limit",
	CodeNotExecutable: "cannot be executed",
	CodeUnsafe:        "unsafe path",
	CodeLost:          "no longer known",
	CodeTooLarge:      "too large",
	CodeCancelled:     "cancelled",
	CodeBusy:          "too much going on at once",
	CodeWorkdir:       "working directory cannot be used",
}

func (c ErrorCode) String() string {
	if int(c) < len(codeNames) && codeNames[c] != "" {
		return codeNames[c]
	}
	return fmt.Sprintf("error code %d", uint8(c))
}
