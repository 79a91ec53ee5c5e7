package kubernetes

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	typed "k8s.io/client-go/kubernetes/typed/batch/v1"

	"github.com/llmsandbox/llmsandbox/internal/ctxlock"
	"github.com/llmsandbox/llmsandbox/internal/kubernetes/access"
	"github.com/llmsandbox/llmsandbox/internal/kubernetes/podspec"
)

// An owner is what a Backend's pods belong to: a Job that never makes a pod. Its deadline
// is pushed forward as long as there are pods. When that stops, the Job
// fails, the cluster deletes it at once, and its pods with it.
type owner struct {
	jobs typed.JobInterface
	id   string
	ttl  time.Duration

	lock  ctxlock.Mutex // of the fields below
	users int
	owed  []func(context.Context) error // deletions of pods that failed
	ref   *metav1.OwnerReference        // nil: there is no Job
	stop  context.CancelFunc            // of the heartbeat
	beats sync.WaitGroup
}

func newOwner(c *access.Cluster, id string, ttl time.Duration) *owner {
	return &owner{jobs: c.Client.BatchV1().Jobs(c.Namespace), id: id, ttl: ttl, lock: ctxlock.New()}
}

// enter counts a pod, and returns what is to own it: nil where the cluster does not let us
// have a Job.
func (o *owner) enter(ctx context.Context) (*metav1.OwnerReference, error) {
	if err := o.lock.Lock(ctx); err != nil {
		return nil, err
	}
	defer o.lock.Unlock()
	if o.ref == nil {
		if err := o.start(ctx); err != nil {
			return nil, err
		}
	}
	o.users++
	return o.ref, nil
}

// start makes the Job. Like a pod's, its making is seen to the end.
func (o *owner) start(ctx context.Context) error {
	call, cancel := context.WithTimeout(context.WithoutCancel(ctx), createTimeout)
	defer cancel()
	began := time.Now()
	job, err := o.jobs.Create(call, ownerJob(o.id, seconds(o.ttl)), metav1.CreateOptions{})
	if apierrors.IsForbidden(err) { // by a role, or by a quota
		return nil
	}
	if err != nil {
		err = access.Explain("make the Job that owns the sandboxes", err)
		if inDoubt(err) { // it would end by itself
			err = errors.Join(err, o.remove(context.WithoutCancel(ctx), nil, 0))
		}
		return err
	}
	no := false
	o.ref = &metav1.OwnerReference{
		APIVersion: batchv1.SchemeGroupVersion.String(), Kind: "Job", Name: job.Name, UID: job.UID,
		Controller: &no, BlockOwnerDeletion: &no,
	}
	beating, stop := context.WithCancel(context.Background())
	o.stop = stop
	o.beats.Go(func() { o.beat(beating, o.ref, began) })
	return nil
}

// leave is enter's reverse, after the pod is gone: with the last pod the Job goes. Where the
// pod could not be deleted, owed deletes it and is tried again with each heartbeat. The
// heartbeat ends with the last pod even then: the cluster removes what is left.
func (o *owner) leave(ctx context.Context, owed func(context.Context) error) error {
	// Held by others only for requests that have a bound.
	if err := o.lock.Lock(context.WithoutCancel(ctx)); err != nil {
		return err
	}
	defer o.lock.Unlock()
	patience := deletePatience
	if owed != nil {
		o.owed, patience = append(o.owed, owed), 0
	}
	o.users--
	if o.users > 0 || o.ref == nil {
		return nil
	}
	ref := o.ref
	o.halt()
	return o.remove(ctx, ref, patience)
}

// settle deletes pods that could not be deleted before.
func (o *owner) settle(ctx context.Context) {
	if o.lock.Lock(ctx) != nil {
		return // the one that ends the heartbeat has the lock
	}
	defer o.lock.Unlock()
	ctx, cancel := context.WithTimeout(ctx, o.ttl/beatsPerTTL)
	defer cancel()
	o.owed = slices.DeleteFunc(o.owed, func(try func(context.Context) error) bool { return try(ctx) == nil })
}

// halt ends the heartbeat.
func (o *owner) halt() {
	o.stop()
	o.beats.Wait()
	o.ref, o.stop, o.owed = nil, nil, nil
}

// forget gives up a Job that is gone: pods that are made later get another one.
func (o *owner) forget(ctx context.Context, ref *metav1.OwnerReference) {
	if o.lock.Lock(ctx) != nil {
		return // the one that ends the heartbeat has the lock
	}
	defer o.lock.Unlock()
	if o.ref == ref {
		o.stop()
		o.ref, o.stop = nil, nil
	}
}

// remove deletes the Job; any that has the name when ref is nil.
func (o *owner) remove(ctx context.Context, ref *metav1.OwnerReference, patience time.Duration) error {
	background := metav1.DeletePropagationBackground
	d := metav1.DeleteOptions{PropagationPolicy: &background}
	if ref != nil {
		d.Preconditions = &metav1.Preconditions{UID: &ref.UID}
	}
	err := persist(ctx, patience, func() error { return o.jobs.Delete(ctx, ownerName(o.id), d) })
	if apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		return nil
	}
	return access.Explain("delete the Job "+ownerName(o.id), err)
}

func ownerName(id string) string { return fmt.Sprintf("llmsandbox-owner-%s", id) }

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
