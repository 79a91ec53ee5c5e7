package kubernetes

import (
	"context"
	"fmt"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/llmsandbox/llmsandbox/internal/kubernetes/podspec"
)

// A heartbeat comes beatsPerTTL times within a TTL, and one that failed is tried again
// retriesPerBeat times before the next.
const (
	beatsPerTTL    = 3
	retriesPerBeat = 4
)

// roleOwner is the label of Jobs that own sandboxes.
const roleOwner = "owner"

// ownerJob is a Job that makes no pod and only waits for its deadline.
func ownerJob(id string, deadline int64) *batchv1.Job {
	none, one, at := int32(0), int32(1), int32(0)
	no, yes := false, true
	labels := map[string]string{
		podspec.LabelManagedBy: podspec.ManagedBy, podspec.LabelRole: roleOwner, podspec.LabelOwner: id,
	}
	return &batchv1.Job{
		ObjectMeta: metav1.ObjectMeta{Name: ownerName(id), Labels: labels},
		Spec: batchv1.JobSpec{
			Parallelism: &none, Completions: &one, BackoffLimit: &none,
			ActiveDeadlineSeconds: &deadline, TTLSecondsAfterFinished: &at,
			// A template has to be there. What there never is still keeps to the strictest
			// rules, which the API server applies to it.
			Template: corev1.PodTemplateSpec{Spec: corev1.PodSpec{
				RestartPolicy: corev1.RestartPolicyNever, AutomountServiceAccountToken: &no,
				SecurityContext: &corev1.PodSecurityContext{
					RunAsNonRoot: &yes, SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault},
				},
				Containers: []corev1.Container{{
					Name: "never", Image: "never-started", SecurityContext: &corev1.SecurityContext{
						AllowPrivilegeEscalation: &no, Capabilities: &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}},
					},
				}},
			}},
		},
	}
}

// beat pushes the Job's deadline forward until ctx ends or the Job is gone.
func (o *owner) beat(ctx context.Context, ref *metav1.OwnerReference, began time.Time) {
	pause := o.ttl / beatsPerTTL
	timer := time.NewTimer(pause)
	defer timer.Stop()
	for {
		select {
		case <-timer.C:
		case <-ctx.Done():
			return
		}
		err := o.push(ctx, ref, began, pause)
		switch {
		case err == nil:
			o.settle(ctx)
			timer.Reset(pause)
		case apierrors.IsNotFound(err), apierrors.IsConflict(err):
			o.forget(ctx, ref)
			return
		default:
			// The pods live on until the Job's time is over, which their watch reports.
			timer.Reset(pause / retriesPerBeat)
		}
	}
}

// push sets the deadline to a TTL from now. It counts from when the cluster first saw the
// Job, which was not before the request for it was begun.
func (o *owner) push(ctx context.Context, ref *metav1.OwnerReference, began time.Time, patience time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	now := time.Now()
	// The monotonic clock stands still while this machine sleeps, and the other may be set.
	age := max(now.Sub(began), now.Round(0).Sub(began.Round(0)))
	patch := fmt.Appendf(nil, `{"metadata":{"uid":%q},"spec":{"activeDeadlineSeconds":%d}}`, ref.UID, seconds(age+o.ttl))
	_, err := o.jobs.Patch(ctx, ref.Name, types.MergePatchType, patch, metav1.PatchOptions{})
	return err
}

// seconds rounds up.
func seconds(d time.Duration) int64 { return int64((d + time.Second - 1) / time.Second) }
