package podspec

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/llmsandbox/llmsandbox/backend"
	"github.com/llmsandbox/llmsandbox/internal/hostmount"
)

// RoleVolume is the label LabelRole of the PersistentVolumeClaim of a volume, whose
// AnnotationInfo is JSON of backend.Volume.
const RoleVolume = "volume"

// VolumeClaim is the name of the claim of a volume. Not every name of a volume can be one
// of an object, and nobody else names a claim like that.
func VolumeClaim(volume string) string {
	sum := sha256.Sum256([]byte(volume))
	return "llmsandbox-volume-" + hex.EncodeToString(sum[:16])
}

// OwnsFiles is the index of the volume whose user code is: the first that it can write to, so that files that sandboxes make
// there belong to all of them. It is -1 where there is none. Those that only read stay users of their own: they are not to
// use up each other's processes.
func OwnsFiles(all []backend.VolumeMount) int {
	return slices.IndexFunc(all, func(v backend.VolumeMount) bool { return !v.ReadOnly })
}

// volumeGroup is a group of code in all sandboxes with volumes. The cluster gives it what is in a volume when a sandbox
// starts, where the storage driver can do that.
const volumeGroup = firstUID - 1

const volumeClaims = volumePrefix + "volume-"

// claimOf is the pod's name for the claim of a volume. A claim that a pod has twice never
// becomes ready, so a volume that is mounted twice has one.
func claimOf(all []backend.VolumeMount, volume string) string {
	return volumeClaims + strconv.Itoa(slices.IndexFunc(all, func(v backend.VolumeMount) bool { return v.Name == volume }))
}

// addVolumes adds the volumes of a sandbox to its pod.
func addVolumes(s *corev1.PodSpec, all []backend.VolumeMount) {
	if len(all) == 0 {
		return
	}
	s.SecurityContext.FSGroup = new(int64(volumeGroup))
	for i, v := range all {
		name := claimOf(all, v.Name)
		if name == volumeClaims+strconv.Itoa(i) {
			s.Volumes = append(s.Volumes, corev1.Volume{Name: name, VolumeSource: corev1.VolumeSource{
				PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: VolumeClaim(v.Name)},
			}})
		}
		c := &s.Containers[0]
		c.VolumeMounts = append(c.VolumeMounts, corev1.VolumeMount{Name: name, MountPath: v.Target, ReadOnly: v.ReadOnly})
	}
}

// checkVolumes fails where volumes cannot be where they are to be.
func checkVolumes(spec backend.Spec, own corev1.Container) error {
	taken := slices.Clone(spec.Layers)
	for _, m := range own.VolumeMounts {
		taken = append(taken, backend.Layer{Target: path.Clean(m.MountPath)})
	}
	return hostmount.CheckVolumes(spec.Volumes, spec.Mounts, taken, WorkdirOf(spec))
}

// HasVolumes fails for a pod without volumes that were asked for, such as one that was made ahead.
func HasVolumes(p *corev1.Pod, asked []backend.VolumeMount) error {
	v := viewOf(p, Container)
	for _, a := range asked {
		if !slices.ContainsFunc(v.container.VolumeMounts, func(m corev1.VolumeMount) bool {
			c := v.volume(m.Name).PersistentVolumeClaim
			return m.MountPath == a.Target && m.SubPath == "" && (m.ReadOnly || !a.ReadOnly) && c != nil && c.ClaimName == VolumeClaim(a.Name)
		}) {
			return fmt.Errorf("volume %s: %w: the pod that Options.Source has given does not have it at %s: let the backend make pods", a.Name, backend.ErrUnsupported, a.Target)
		}
	}
	return nil
}

// volumes reports where volumes are, and whether they hold no more than their size.
func (v view) volumes() []backend.Control {
	var list []string
	writable := false
	for _, m := range v.container.VolumeMounts {
		if !strings.HasPrefix(m.Name, volumeClaims) {
			continue
		}
		mode := "ro"
		if !m.ReadOnly {
			mode, writable = "rw", true
		}
		list = append(list, fmt.Sprintf("%s (%s)", m.MountPath, mode))
	}
	if len(list) == 0 {
		return nil
	}
	all := []backend.Control{on("volumes", "PersistentVolumeClaim", strings.Join(list, ", "))}
	if writable {
		all = append(all, backend.Control{Name: "volume-size",
			Why: "a claim has a size, but its storage driver need not hold it to that: a disk is that large, and a share or a directory of a node can hold more",
			Fix: "create volumes with a storage class whose driver makes disks, or mount them read-only"})
	}
	return all
}
