package podspec

import corev1 "k8s.io/api/core/v1"

// sidecarDisk is what a container of the template's may take of the node's disk when it
// does not say, in bytes. The cluster evicts a pod that takes more than all of its
// containers that have a limit may take together, so the sandbox's small one alone
// would be everybody's.
const sidecarDisk = 1 << 30

func shareDisk(r *corev1.ResourceRequirements) {
	const disk = corev1.ResourceEphemeralStorage
	if _, said := r.Limits[disk]; said {
		return
	}
	if r.Limits == nil {
		r.Limits = corev1.ResourceList{}
	}
	if r.Requests == nil {
		r.Requests = corev1.ResourceList{}
	}
	// Without a request of its own, it would ask for as much as the limit is.
	asked, said := r.Requests[disk]
	if !said {
		asked = bytesOf(ephemeral)
	}
	r.Requests[disk] = asked
	r.Limits[disk] = bytesOf(max(sidecarDisk, asked.Value()))
}

// addDisk adds the template's own volumes on the node's disk to what the pod may take of
// it, unless the template says how much that is.
func addDisk(r *corev1.ResourceRequirements, over *corev1.PodTemplateSpec) {
	const disk = corev1.ResourceEphemeralStorage
	if i := ours(over.Spec.Containers); i >= 0 {
		if _, said := over.Spec.Containers[i].Resources.Limits[disk]; said {
			return
		}
	}
	limit := r.Limits[disk]
	for _, v := range over.Spec.Volumes {
		if e := v.EmptyDir; e != nil && onDisk(e) && e.SizeLimit != nil {
			limit.Add(*e.SizeLimit)
		}
	}
	r.Limits[disk] = limit
}
