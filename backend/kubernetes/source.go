package kubernetes

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	typed "k8s.io/client-go/kubernetes/typed/core/v1"

	"github.com/llmsandbox/llmsandbox/backend"
	"github.com/llmsandbox/llmsandbox/internal/kubernetes/access"
	"github.com/llmsandbox/llmsandbox/internal/kubernetes/podspec"
)

// A PodSource is where the pods of sandboxes come from. The default creates each when it
// is asked for; another one may hand out pods that were made ahead, such as those that a
// controller for sandboxes keeps warm.
type PodSource interface {
	// Obtain returns a pod for the one that is asked for, once. It has the labels,
	// annotations and owner of that, whatever its name, and its agent is that of a pod
	// that this package made: the token and the socket are read from the container's own
	// environment and command. It need not run yet. The caller deletes it. On an error,
	// and when ctx has ended, nothing of it is left.
	Obtain(ctx context.Context, pod *corev1.Pod) (*corev1.Pod, error)
}

// createTimeout bounds the making of an object, which nothing interrupts.
const createTimeout = 30 * time.Second

// creator makes the pod that is asked for.
type creator struct {
	pods typed.PodInterface
}

// Obtain creates the pod. The cluster may carry out a call that was cancelled, so the call
// is waited for, and a pod that comes too late is deleted.
func (c creator) Obtain(ctx context.Context, pod *corev1.Pod) (*corev1.Pod, error) {
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	call, cancel := context.WithTimeout(context.WithoutCancel(ctx), createTimeout)
	defer cancel()
	made, err := c.pods.Create(call, pod, metav1.CreateOptions{})
	switch {
	case apierrors.IsAlreadyExists(err):
		return nil, fmt.Errorf("pod %s: %w: another sandbox has that id", pod.Name, backend.ErrLocked)
	case err != nil:
		err = access.Explain("create the pod "+pod.Name, err)
		if inDoubt(err) {
			err = errors.Join(err, c.discard(context.WithoutCancel(ctx), pod))
		}
		return nil, err
	case ctx.Err() != nil:
		return nil, errors.Join(context.Cause(ctx), deletePod(context.WithoutCancel(ctx), c.pods, made.Name, made.UID, deletePatience))
	}
	return made, nil
}

// discard removes a pod of which it is not known whether it was made.
func (c creator) discard(ctx context.Context, pod *corev1.Pod) error {
	ctx, cancel := context.WithTimeout(ctx, createTimeout)
	defer cancel()
	made, err := c.pods.Get(ctx, pod.Name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) || err == nil && made.Labels[podspec.LabelOwner] != pod.Labels[podspec.LabelOwner] {
		return nil
	}
	if err != nil {
		return access.Explain("find out whether the pod "+pod.Name+" was made nevertheless", err)
	}
	return deletePod(ctx, c.pods, made.Name, made.UID, deletePatience)
}

// inDoubt reports whether a request that failed may have been carried out: no answer came, or
// one that the server itself waited too long.
func inDoubt(err error) bool {
	var status apierrors.APIStatus
	if errors.As(err, &status) {
		return apierrors.IsTimeout(err) || apierrors.IsServerTimeout(err)
	}
	return !utilnet.IsConnectionRefused(err)
}
