package podexec

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

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
