package podspec

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/llmsandbox/llmsandbox/backend"
)

// pids reports the limit of processes, which Kubernetes has none of for one pod: the
// agent has the kernel count the processes of the user that only this pod is.
func (v view) pids(asked int64) backend.Control {
	const name, by, fix = "pids", "RLIMIT_NPROC", "have the nodes limit the processes of each pod (podPidsLimit of the kubelet)"
	switch class := v.runtimeClass(); {
	case asked <= 0:
		return backend.Control{Name: name, Why: "no limit was asked for"}
	case !v.nproc():
		return backend.Control{Name: name, Why: "Kubernetes has no such limit for one pod", Fix: fix}
	case class != "":
		return backend.Control{Name: name, Why: fmt.Sprintf("Kubernetes has no such limit for one pod, and the kernel of runtime class %s need not hold one of a user's processes", class), Fix: fix}
	case v.root():
		return backend.Control{Name: name, Why: "Kubernetes has no such limit for one pod, and the kernel holds root to none", Fix: "leave the user to the sandbox"}
	case !v.ownUser() && v.sharesUsers():
		return backend.Control{Name: name, By: by, Why: "it is of all processes of that user on the node, not of this sandbox",
			Fix: "leave the user to the sandbox"}
	}
	return on(name, by, "of a user that only this sandbox is")
}

// nproc reports whether the agent was given a limit of processes.
func (v view) nproc() bool {
	for i, a := range v.container.Args {
		if a == "--rlimit" && i+1 < len(v.container.Args) && strings.HasPrefix(v.container.Args[i+1], "nproc=") {
			return true
		}
	}
	return false
}

// ownUser reports whether code runs as the user that was drawn for this pod.
func (v view) ownUser() bool {
	uid := v.user()
	return uid != nil && v.pod.Annotations[annotationUser] == strconv.FormatInt(*uid, 10)
}

// sharesUsers reports whether users inside are those of the node.
func (v view) sharesUsers() bool {
	return v.pod.Spec.HostUsers == nil || *v.pod.Spec.HostUsers
}

// disk reports the limit of what may be written.
func (v view) disk(asked int64) backend.Control {
	for _, name := range []string{VolumeWorkdir, VolumeTemp} {
		i := slices.IndexFunc(v.pod.Spec.Volumes, func(x corev1.Volume) bool { return x.Name == name })
		if i >= 0 && v.pod.Spec.Volumes[i].EmptyDir != nil && v.pod.Spec.Volumes[i].EmptyDir.SizeLimit != nil {
			continue
		}
		if asked <= 0 {
			return backend.Control{Name: "disk", Why: "no limit was asked for"}
		}
		return backend.Control{Name: "disk", Why: "the volume " + name + " has no size", Fix: "leave the volume as it was"}
	}
	return on("disk", "tmpfs", Workdir+" and "+TempDir+" each; what they hold counts as memory")
}
