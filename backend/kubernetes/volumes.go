package kubernetes

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	typed "k8s.io/client-go/kubernetes/typed/core/v1"

	"github.com/llmsandbox/llmsandbox/backend"
	"github.com/llmsandbox/llmsandbox/internal/errclass"
	"github.com/llmsandbox/llmsandbox/internal/hostmount"
	"github.com/llmsandbox/llmsandbox/internal/kubernetes/access"
	"github.com/llmsandbox/llmsandbox/internal/kubernetes/podspec"
)

// DefaultVolumeSize is the size of a volume for which none is asked. A claim must have one.
const DefaultVolumeSize = 1 << 30

var _ backend.Volumes = (*Backend)(nil)

func (b *Backend) claims() typed.PersistentVolumeClaimInterface {
	return b.cluster.Client.CoreV1().PersistentVolumeClaims(b.cluster.Namespace)
}

// CreateVolume makes a PersistentVolumeClaim, which has no owner and so stays. A size is what it asks for, since every claim must ask
// for one. Whether it can hold more is up to its storage driver, as the control volume-size says.
func (b *Backend) CreateVolume(ctx context.Context, v backend.Volume) (backend.Volume, error) {
	if err := hostmount.CheckVolumeName(v.Name); err != nil {
		return v, err
	}
	if v.Size < 0 {
		return v, errclass.Errorf(backend.ErrInvalid, "volume %s: its size is negative", v.Name)
	}
	about, err := json.Marshal(v)
	if err != nil {
		return v, fmt.Errorf("describe volume %s: %w", v.Name, err)
	}
	claim := &corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{
			Name:        podspec.VolumeClaim(v.Name),
			Labels:      map[string]string{podspec.LabelManagedBy: podspec.ManagedBy, podspec.LabelRole: podspec.RoleVolume},
			Annotations: map[string]string{podspec.AnnotationInfo: string(about), podspec.AnnotationUser: strconv.FormatInt(podspec.NewUID(), 10)},
		},
		Spec: corev1.PersistentVolumeClaimSpec{
			AccessModes: []corev1.PersistentVolumeAccessMode{cmp.Or(b.options.VolumeAccess, corev1.ReadWriteOnce)},
			Resources: corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{
				corev1.ResourceStorage: *resource.NewQuantity(cmp.Or(v.Size, DefaultVolumeSize), resource.BinarySI),
			}},
		},
	}
	if b.options.StorageClass != "" {
		claim.Spec.StorageClassName = new(b.options.StorageClass)
	}
	made, err := b.claims().Create(ctx, claim, metav1.CreateOptions{})
	switch {
	case apierrors.IsAlreadyExists(err):
		return v, b.volumeExists(ctx, v.Name)
	case err != nil:
		return v, access.Explain("create the PersistentVolumeClaim of volume "+v.Name, err)
	case made.Spec.StorageClassName == nil: // no storage would ever come, and no sandbox with it start
		err = fmt.Errorf("volume %s: %w: the cluster has no default storage class: name one (Options.StorageClass)", v.Name, backend.ErrUnsupported)
		return v, errors.Join(err, b.deleteClaim(context.WithoutCancel(ctx), made))
	}
	made.Annotations = claim.Annotations // whatever an admission webhook has made of them
	v, _ = volumeOf(made)
	return v, nil
}

// volumeExists is the error of a volume whose claim is there.
func (b *Backend) volumeExists(ctx context.Context, name string) error {
	why := "choose another name, or remove it"
	if _, err := b.claimOf(ctx, name); errors.Is(err, backend.ErrVolumeNotFound) {
		why = "it is being removed: its name is free when the last sandbox that has it has ended"
	}
	return errclass.Errorf(backend.ErrVolumeExists, "there is a volume %s already: %s", name, why)
}

// volumeOf is the volume of a claim; not ok: it has none, or has one no more. Others in the namespace may make claims as they like.
func volumeOf(claim *corev1.PersistentVolumeClaim) (v backend.Volume, ok bool) {
	err := json.Unmarshal([]byte(claim.Annotations[podspec.AnnotationInfo]), &v)
	ours := claim.Labels[podspec.LabelManagedBy] == podspec.ManagedBy && claim.Labels[podspec.LabelRole] == podspec.RoleVolume
	_, user := podspec.ParseUID(claim.Annotations[podspec.AnnotationUser])
	if err != nil || !ours || !user || hostmount.CheckVolumeName(v.Name) != nil || claim.Name != podspec.VolumeClaim(v.Name) || claim.DeletionTimestamp != nil {
		return backend.Volume{}, false
	}
	size := claim.Spec.Resources.Requests[corev1.ResourceStorage]
	if has, known := claim.Status.Capacity[corev1.ResourceStorage]; known { // the driver may have had only larger ones
		size = has
	}
	v.Created, v.Size = claim.CreationTimestamp.Time, size.Value()
	return v, true
}

// claimOf returns the claim of a volume. It fails with backend.ErrVolumeNotFound.
func (b *Backend) claimOf(ctx context.Context, name string) (*corev1.PersistentVolumeClaim, error) {
	if hostmount.CheckVolumeName(name) != nil {
		return nil, noVolume(name)
	}
	claim, err := b.claims().Get(ctx, podspec.VolumeClaim(name), metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil, noVolume(name)
	}
	if err != nil {
		return nil, access.Explain("look for volume "+name, err)
	}
	if _, ok := volumeOf(claim); !ok {
		return nil, noVolume(name)
	}
	return claim, nil
}

func noVolume(name string) error {
	return errclass.Errorf(backend.ErrVolumeNotFound, "there is no volume %.80q", name)
}

// userOf is the user of a sandbox with these volumes. It fails for volumes that are not there: their pod would wait for them.
func (b *Backend) userOf(ctx context.Context, volumes []backend.VolumeMount) (uid int64, err error) {
	uid, owns := podspec.NewUID(), podspec.OwnsFiles(volumes)
	for i, v := range volumes {
		claim, err := b.claimOf(ctx, v.Name)
		if errors.Is(err, backend.ErrVolumeNotFound) {
			err = fmt.Errorf("%w: create it first", err)
		}
		if err != nil {
			return 0, err
		}
		if i == owns {
			uid, _ = podspec.ParseUID(claim.Annotations[podspec.AnnotationUser]) // as volumeOf has checked
		}
	}
	return uid, nil
}

// ListVolumes implements [backend.Volumes].
func (b *Backend) ListVolumes(ctx context.Context) ([]backend.Volume, error) {
	list, err := b.claims().List(ctx, metav1.ListOptions{
		LabelSelector: podspec.LabelManagedBy + "=" + podspec.ManagedBy + "," + podspec.LabelRole + "=" + podspec.RoleVolume,
	})
	if err != nil {
		return nil, access.Explain("list the volumes", err)
	}
	all := []backend.Volume{}
	for _, claim := range list.Items {
		if v, ok := volumeOf(&claim); ok {
			all = append(all, v)
		}
	}
	slices.SortFunc(all, func(a, b backend.Volume) int { return strings.Compare(a.Name, b.Name) })
	return all, nil
}

// RemoveVolume deletes the claim. The cluster keeps one that a pod has until that has ended, and gives it to no other: so with force, and
// when a sandbox opens at this moment, a sandbox has the files until it ends.
func (b *Backend) RemoveVolume(ctx context.Context, name string, force bool) error {
	claim, err := b.claimOf(ctx, name)
	if err != nil {
		return err
	}
	who, err := b.users(ctx, claim.Name)
	if err != nil {
		return err
	}
	if n := len(who); n > 0 && !force {
		has := map[bool]string{true: "has", false: "have"}[n == 1]
		return errclass.Errorf(backend.ErrVolumeInUse, "%s %s volume %s: remove the sandbox first, or force it, which removes the files when the sandbox ends",
			strings.Join(who[:min(n, 8)], ", "), has, name)
	}
	gone, stop := b.awaitGone(ctx, claim)
	defer stop()
	err = b.deleteClaim(ctx, claim)
	if err == nil && len(who) == 0 {
		gone()
	}
	if apierrors.IsNotFound(err) || apierrors.IsConflict(err) { // another has its name by now
		return noVolume(name)
	}
	return err
}

// goneWait bounds the wait for a claim that no pod has: the cluster lets go of it a moment after it was deleted.
const goneWait = 10 * time.Second

// awaitGone watches a claim that is about to be deleted. Gone returns when it is no more, so that its name is free, or when that cannot be
// seen.
func (b *Backend) awaitGone(ctx context.Context, claim *corev1.PersistentVolumeClaim) (gone, stop func()) {
	ctx, cancel := context.WithTimeout(ctx, goneWait)
	w, err := b.claims().Watch(ctx, metav1.ListOptions{FieldSelector: "metadata.name=" + claim.Name, ResourceVersion: claim.ResourceVersion})
	if err != nil { // such as without the right to watch
		return func() {}, cancel
	}
	gone = func() {
		for {
			select {
			case e, ok := <-w.ResultChan():
				if c, is := e.Object.(*corev1.PersistentVolumeClaim); !ok || e.Type == watch.Error || is && c.UID == claim.UID && e.Type == watch.Deleted {
					return
				}
			case <-ctx.Done():
				return
			}
		}
	}
	return gone, func() { w.Stop(); cancel() }
}

func (b *Backend) deleteClaim(ctx context.Context, claim *corev1.PersistentVolumeClaim) error {
	err := b.claims().Delete(ctx, claim.Name, metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &claim.UID}})
	return access.Explain("delete the PersistentVolumeClaim "+claim.Name, err)
}

// users are the sandboxes that have a claim, by their ids, and the pods of others.
func (b *Backend) users(ctx context.Context, claim string) (who []string, err error) {
	list, err := b.cluster.Client.CoreV1().Pods(b.cluster.Namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, access.Explain("look for sandboxes that have the volume", err)
	}
	for _, pod := range list.Items {
		over := pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed
		if over || !slices.ContainsFunc(pod.Spec.Volumes, func(v corev1.Volume) bool {
			return v.PersistentVolumeClaim != nil && v.PersistentVolumeClaim.ClaimName == claim
		}) {
			continue
		}
		name := "pod " + pod.Name
		if id := pod.Labels[podspec.LabelSandbox]; id != "" && pod.Labels[podspec.LabelManagedBy] == podspec.ManagedBy {
			name = id
		}
		who = append(who, name)
	}
	return who, nil
}
