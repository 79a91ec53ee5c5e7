package podexec

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/remotecommand"
)

var (
	// ErrGone: the pod or its container is not there, or runs no longer.
	ErrGone = errors.New("the pod or its container is gone")
	// ErrLost: the stream broke; what became of the program is not known.
	ErrLost = errors.New("the stream to the pod was lost")
	// ErrNoProgram: the container has no such program, or cannot start it.
	ErrNoProgram = errors.New("the program cannot be started in the container")
	// ErrTooMuch: a program said more than the caller wanted to read.
	ErrTooMuch = errors.New("the program says too much")
)

var (
	errOutOfStep = errors.New("the stream is out of step")
	errNoStatus  = errors.New("it ended without saying how the program did")
)

// An ExitError says that a program ended with another code than 0.
type ExitError struct {
	Code   int
	Stderr string // the first of it
}

func (e *ExitError) Error() string {
	if e.Stderr == "" {
		return fmt.Sprintf("the program ended with exit code %d", e.Code)
	}
	return fmt.Sprintf("the program ended with exit code %d and said %q", e.Code, e.Stderr)
}

// A refusedError says that a server did not make a stream of a request.
type refusedError struct{ cause error }

func (e *refusedError) Error() string { return e.cause.Error() }
func (e *refusedError) Unwrap() error { return e.cause }

// refusal is a server's reason, a Status if it gave one.
func refusal(resp *http.Response) error {
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxStatus))
	if err != nil {
		return &refusedError{fmt.Errorf("the server answers %s, and its reason was lost: %w", resp.Status, err)}
	}
	var status metav1.Status
	if json.Unmarshal(body, &status) == nil && status.Status == metav1.StatusFailure {
		status.Message = plain(status.Message)
		return &refusedError{classify(&apierrors.StatusError{ErrStatus: status}, status.Message)}
	}
	// A proxy, or a server that has no such stream, or the kubelet behind it.
	said := clip(strings.TrimSpace(string(body)))
	return &refusedError{classify(fmt.Errorf("the server answers %s: %s", resp.Status, said), said)}
}

// otherWay reports whether what was refused over WebSocket may go over SPDY. A Status comes
// from an API server, which has WebSockets. Permissions are another matter: a WebSocket
// starts with GET and SPDY with POST, and older servers take that for two verbs.
func otherWay(err error) bool {
	var refused *refusedError
	var status apierrors.APIStatus
	return errors.As(err, &refused) && (!errors.As(err, &status) || apierrors.IsForbidden(err))
}

// maxStatus bounds the status that comes at a stream's end, in bytes.
const maxStatus = 64 << 10

// verdict is what a stream's last message, a Status in JSON, says of the program: nil when
// it ended with code 0.
func verdict(words []byte, stderr string) error {
	if len(words) == 0 {
		return fmt.Errorf("%w: %w", ErrLost, errNoStatus)
	}
	var status metav1.Status
	if err := json.Unmarshal(words, &status); err != nil {
		return fmt.Errorf("%w: %w: its last words are no status: %w", ErrLost, errOutOfStep, err)
	}
	switch {
	case status.Status == metav1.StatusSuccess:
		return nil
	case status.Status != metav1.StatusFailure:
		return fmt.Errorf("%w: %w: its status is %q", ErrLost, errOutOfStep, clip(status.Status))
	case status.Reason == remotecommand.NonZeroExitCodeReason:
		code, err := exitCode(&status)
		if err != nil {
			return fmt.Errorf("%w: %w: %w", ErrLost, errOutOfStep, err)
		}
		return &ExitError{Code: code, Stderr: stderr}
	}
	status.Message = plain(status.Message)
	return classify(&apierrors.StatusError{ErrStatus: status}, status.Message)
}

func exitCode(status *metav1.Status) (int, error) {
	if status.Details != nil {
		for _, c := range status.Details.Causes {
			if c.Type == remotecommand.ExitCodeCauseType {
				code, err := strconv.ParseInt(c.Message, 10, 32)
				if err != nil {
					return 0, fmt.Errorf("its exit code is %q", clip(c.Message))
				}
				return int(code), nil
			}
		}
	}
	return 0, errors.New("it has no exit code")
}

// What kubelets and container runtimes (containerd, CRI-O; runc, crun, gVisor) say. They
// give no reason but InternalError, so only the message says.
var (
	goneWords = []string{
		"container not found",
		"no running task found",
		"container is not running",
		"container is in CONTAINER_EXITED state",
		"container is in CONTAINER_CREATED state",
		"cannot exec into a container in a completed pod",
		"container is not created or running",
		"cannot exec in a stopped state",
		"cannot exec in a stopped container",
		"cannot exec in a deleted state",
		"pod does not exist",
	}
	noProgramWords = []string{
		"executable file not found",
		"no such file or directory",
		"permission denied",
		"exec format error",
		"not a directory",
	}
)

// classify adds to a server's answer, and the text in it, which of this package's errors
// it is.
func classify(err error, said string) error {
	switch {
	case apierrors.IsNotFound(err), says(said, goneWords):
		return fmt.Errorf("%w: %w", ErrGone, err)
	case strings.Contains(said, "exec") && says(said, noProgramWords):
		return fmt.Errorf("%w: %w", ErrNoProgram, err)
	}
	return err
}

func says(said string, words []string) bool {
	return slices.ContainsFunc(words, func(w string) bool { return strings.Contains(said, w) })
}

// plain bounds a message and removes what each server on the way put before it.
func plain(said string) string {
	for strings.HasPrefix(said, internal) {
		said = said[len(internal):]
	}
	return clip(said)
}

const internal = "Internal error occurred: "

// clip bounds text from the other side.
func clip(s string) string {
	if len(s) > maxWords {
		return strings.ToValidUTF8(s[:maxWords], "") + "…"
	}
	return s
}
