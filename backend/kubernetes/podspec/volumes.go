package podspec

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// maxShm bounds /dev/shm, in bytes.
const maxShm = 64 << 20

// volumes are the agent's, on the node's disk, which nothing hostile writes to, and what
// code may write: file systems in memory, each of the disk limit's size.
func volumes(r Request) []corev1.Volume {
	disk := r.Spec.Limits.Disk
	shm := int64(maxShm)
	if disk > 0 {
		shm = min(shm, disk)
	}
	return []corev1.Volume{
		{Name: VolumeAgent, VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}},
		inMemory(VolumeWorkdir, disk), inMemory(VolumeTemp, disk), inMemory(volumeShm, shm),
	}
}

// inMemory is a file system in memory, 0 for any size.
func inMemory(name string, size int64) corev1.Volume {
	e := &corev1.EmptyDirVolumeSource{Medium: corev1.StorageMediumMemory}
	if size > 0 {
		e.SizeLimit = resource.NewQuantity(size, resource.BinarySI)
	}
	return corev1.Volume{Name: name, VolumeSource: corev1.VolumeSource{EmptyDir: e}}
}
