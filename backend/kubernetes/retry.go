package kubernetes

import (
	"context"
	"errors"
	"net"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	typed "k8s.io/client-go/kubernetes/typed/core/v1"

	"github.com/llmsandbox/llmsandbox/internal/kubernetes/access"
)

// Pauses between tries to reach an API server that is away, such as for an update.
const (
	firstPause = 50 * time.Millisecond
	maxPause   = time.Second
)

// deletePatience is how long an API server that is away is waited for to delete something.
const deletePatience = 15 * time.Second

// persist calls do again as long as the API server is away, for at most that long.
func persist(ctx context.Context, patience time.Duration, do func() error) error {
	end := time.Now().Add(patience)
	for pause := firstPause; ; pause = min(2*pause, maxPause) {
		err := do()
		if !away(err) || ctx.Err() != nil || time.Now().Add(pause).After(end) {
			return err
		}
		timer := time.NewTimer(pause)
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return err
		}
	}
}

// away reports whether an API server, or what it needs to reach a pod, could not be reached
// or was too busy: trying again may help.
func away(err error) bool {
	if err == nil || errors.Is(err, context.Canceled) {
		return false
	}
	var timeout net.Error
	switch {
	case utilnet.IsConnectionRefused(err), utilnet.IsConnectionReset(err), utilnet.IsProbableEOF(err),
		utilnet.IsHTTP2ConnectionLost(err), // nothing came on it any more
		errors.As(err, &timeout) && timeout.Timeout(),
		apierrors.IsServiceUnavailable(err), apierrors.IsTooManyRequests(err), apierrors.IsServerTimeout(err), apierrors.IsTimeout(err):
		return true
	}
	return nodeAway(err) || strings.Contains(err.Error(), "apiserver is shutting down") ||
		strings.Contains(err.Error(), "server closed idle connection")
}

// nodeAway reports whether an API server said that it does not reach a pod's node, for which
// it has a phrase for each protocol of streams, or that the kubelet there knows no such pod:
// one that has just started knows none. The pod's watch reports what becomes of it.
func nodeAway(err error) bool {
	return slices.ContainsFunc([]string{"error dialing backend", "error sending request", "pod does not exist"}, func(phrase string) bool { return strings.Contains(err.Error(), phrase) })
}

// deletePod deletes a pod after a grace of seconds, if it still is the one that is meant: uid may be empty
// for any. A pod that is gone already is no error.
func deletePod(ctx context.Context, pods typed.PodInterface, name string, uid types.UID, patience time.Duration, grace int64) error {
	o := metav1.DeleteOptions{GracePeriodSeconds: &grace}
	if uid != "" {
		o.Preconditions = &metav1.Preconditions{UID: &uid}
	}
	err := persist(ctx, patience, func() error { return pods.Delete(ctx, name, o) })
	// Conflict: another pod has the name by now.
	if apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		return nil
	}
	return access.Explain("delete the pod "+name, err)
}
