package access

import (
	"context"
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// maxMessage bounds what is repeated of a cluster's own text, in bytes: an admission
// webhook may say anything.
const maxMessage = 2 << 10

// Explain makes of the error of a request to a cluster one that a user can
// act on: what failed, why, and what to do. errors.Is, errors.As and apierrors' functions
// still see the error itself. nil stays nil.
func Explain(doing string, err error) error {
	if err == nil {
		return nil
	}
	var known *Error
	if errors.As(err, &known) || errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return fmt.Errorf("%s: %w", doing, err)
	}
	e := &Error{Doing: doing, Cause: err}
	var status apierrors.APIStatus
	if errors.As(err, &status) {
		explainStatus(e, status.Status())
	} else {
		explainConnection(e, err)
	}
	return e
}

// cut bounds a text of the cluster.
func cut(s string) string {
	if len(s) > maxMessage {
		return s[:maxMessage] + "… (cut)"
	}
	return s
}
