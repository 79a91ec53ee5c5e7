package podspec

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// maxShm bounds /dev/shm, in bytes.
const maxShm = 64 << 20

// volumes are the agent's and what code may write: file systems in memory, the latter each
// of the disk limit's size. Layers are on the node's disk, which nothing hostile writes to.
//
// The agent must stay in memory when code has filled all the rest: its program would be
// read from a disk again and again, and it would take minutes to say what became of a run.
func volumes(r Request) []corev1.Volume {
	disk := r.Spec.Limits.Disk
	shm := int64(maxShm)
	if disk > 0 {
		shm = min(shm, disk)
	}
	all := []corev1.Volume{
		inMemory(VolumeAgent, 0), inMemory(VolumeWorkdir, disk), inMemory(VolumeTemp, disk), inMemory(volumeShm, shm),
	}
	if len(r.Spec.Layers) > 0 {
		all = append(all, corev1.Volume{Name: volumeLayers, VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}})
	}
	return all
}

// inMemory is a file system in memory, 0 for any size.
func inMemory(name string, size int64) corev1.Volume {
	e := &corev1.EmptyDirVolumeSource{Medium: corev1.StorageMediumMemory}
	if size > 0 {
		e.SizeLimit = resource.NewQuantity(size, resource.BinarySI)
	}
	return corev1.Volume{Name: name, VolumeSource: corev1.VolumeSource{EmptyDir: e}}
}
