package podexec

import (
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/remotecommand"
)

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
	for _, w := range words {
		if strings.Contains(said, w) {
			return true
		}
	}
	return false
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
