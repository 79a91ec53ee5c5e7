package podspec

import (
	"fmt"
	"math"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/llmsandbox/llmsandbox/backend"
	"github.com/llmsandbox/llmsandbox/internal/gpus"
)

// feedScript takes the agent from stdin: see InitContainer. Only dd takes exactly as many
// bytes of a pipe as its argument says, in coreutils and in busybox; what others read ahead would
// be lost to those after them.
const feedScript = `set -eu
umask 022
cd ` + AgentDir + `
while read -r s a && [ -z "$s" ]; do uname -m; done
dd bs="$s" count=1 iflag=fullblock of=seccomp
dd bs="$a" count=1 iflag=fullblock of=agent
[ "$(wc -c <seccomp)" -eq "$s" ] && [ "$(wc -c <agent)" -eq "$a" ] || { echo "the agent did not come whole" >&2; exit 1; }
mkdir closed
: >closed/log
chmod 0 closed
chmod 0444 seccomp
`

// What the agent's file may be used for. Where no user may read it, the kernel keeps other
// processes of the agent's user away from it from its first instruction on; otherwise from
// when the agent itself asks for that, which is soon after. The kernels of runtime classes
// may run only what can be read, as gVisor's does.
const (
	hiddenScript   = "chmod 0111 agent\n"
	readableScript = "chmod 0555 agent\n"
)

// unpackScript has the agent that has just come unpack the layers.
const unpackScript = `exec ./agent unpack ` + LayerDir + "\n"

// initContainer brings the agent. What it has in common with the sandbox's container it
// gets after the merge.
func initContainer(r Request) corev1.Container {
	c := corev1.Container{
		Name: InitContainer, Image: r.AgentImage, ImagePullPolicy: r.PullPolicy,
		WorkingDir:      "/",
		SecurityContext: containerSecurity(),
		VolumeMounts:    []corev1.VolumeMount{{Name: VolumeAgent, MountPath: AgentDir}},
		// What it says when it fails is then in the pod's status.
		TerminationMessagePolicy: corev1.TerminationMessageFallbackToLogsOnError,
	}
	layers := len(r.Spec.Layers) > 0
	if layers {
		c.VolumeMounts = append(c.VolumeMounts, corev1.VolumeMount{Name: volumeLayers, MountPath: LayerDir})
	}
	if r.AgentImage != "" {
		c.Command = []string{"/agent", "install", AgentDir}
		if r.RuntimeClass != "" {
			c.Command = append(c.Command, "--readable")
		}
		if layers {
			c.Command = append(c.Command, "--layers")
			c.Stdin, c.StdinOnce = true, true
		}
		return c
	}
	script := feedScript + hiddenScript
	if r.RuntimeClass != "" {
		script = feedScript + readableScript
	}
	if layers {
		script += unpackScript
	}
	// The cluster must not put variables into it.
	c.Command = []string{"/bin/sh", "-c", literal(script)}
	c.Stdin, c.StdinOnce = true, true
	return c
}

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
	if _, limited := r.Limits[disk]; !limited {
		return
	}
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

// What is asked for a sandbox by default: little, so that many fit on a node. The limits
// are what it may take when it is there.
const (
	requestMilliCPU = 25
	requestMemory   = 32 << 20
	// requestShare is the part of the memory limit that is asked for, if that is more.
	requestShare = 8
	// ephemeral is what the agent and the logs, which stay empty, may take of the node's
	// disk. It is held by eviction. A root file system that can be written to takes the disk limit besides.
	ephemeral = 64 << 20
)

// limitResources sets the limits of the sandbox's container.
func limitResources(r Request) corev1.ResourceList {
	l := corev1.ResourceList{}
	if root := rootBytes(r.Spec); root > 0 || !r.Spec.WritableRoot {
		l[corev1.ResourceEphemeralStorage] = bytesOf(ephemeral + r.LayerBytes + root)
	}
	if m := r.Spec.Limits.Memory; m > 0 {
		l[corev1.ResourceMemory] = bytesOf(m)
	}
	if c := r.Spec.Limits.CPUs; c > 0 {
		l[corev1.ResourceCPU] = *resource.NewMilliQuantity(int64(math.Ceil(c*1000)), resource.DecimalSI)
	}
	if g, err := gpus.Parse(r.Spec.GPUs); err == nil && g.Count > 0 {
		l[resourceGPU] = *resource.NewQuantity(int64(g.Count), resource.DecimalSI)
	}
	return l
}

// resourceGPU is what NVIDIA's device plugin calls a GPU.
const resourceGPU corev1.ResourceName = "nvidia.com/gpu"

// checkGPUs fails for GPUs that no pod can ask for.
func checkGPUs(text string) error {
	g, err := gpus.Parse(text)
	if err == nil && (g.Count < 0 || len(g.IDs)+len(g.CDI) > 0) {
		err = fmt.Errorf("GPUs %s: %w: a pod asks for a number of GPUs and cannot name them: use a number, such as 1", text, backend.ErrUnsupported)
	}
	return err
}

// addRequests asks for little of what the template does not ask for, and never for more
// than the limit. root is what of the limit of disk is the root file system's.
func addRequests(r *corev1.ResourceRequirements, root int64) {
	memory := bytesOf(requestMemory)
	if l, ok := r.Limits[corev1.ResourceMemory]; ok {
		memory = bytesOf(max(requestMemory, l.Value()/requestShare))
	}
	disk := r.Limits[corev1.ResourceEphemeralStorage]
	for name, q := range map[corev1.ResourceName]resource.Quantity{
		corev1.ResourceMemory: memory,
		corev1.ResourceCPU:    *resource.NewMilliQuantity(requestMilliCPU, resource.DecimalSI),
		// As much as the limit, of which few sandboxes take what is the root file system's.
		corev1.ResourceEphemeralStorage: bytesOf(max(disk.Value()-root, 0)),
	} {
		if _, ok := r.Requests[name]; ok {
			continue
		}
		if l, ok := r.Limits[name]; ok && q.Cmp(l) > 0 {
			q = l
		}
		if r.Requests == nil {
			r.Requests = corev1.ResourceList{}
		}
		r.Requests[name] = q
	}
}

// standard are the resources that every container may have. Devices are not among them.
var standard = []corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory, corev1.ResourceEphemeralStorage}

// sameAs gives the init container what the sandbox's has, so that the pod needs no more
// for it, and a quota that wants limits of everybody has them.
func sameAs(r corev1.ResourceRequirements) corev1.ResourceRequirements {
	of := func(all corev1.ResourceList) corev1.ResourceList {
		out := corev1.ResourceList{}
		for name, q := range all {
			if slices.Contains(standard, name) {
				out[name] = q
			}
		}
		return out
	}
	return corev1.ResourceRequirements{Limits: of(r.Limits), Requests: of(r.Requests)}
}

// checkLimits fails where a limit is said twice, and not the same twice.
func checkLimits(l backend.Limits, before, after corev1.ResourceList) error {
	for _, name := range []struct {
		limit string
		in    corev1.ResourceName
	}{{"memory", corev1.ResourceMemory}, {"cpus", corev1.ResourceCPU}} {
		was, now := before[name.in], after[name.in]
		if slices.Contains(l.Required, name.limit) && was.Cmp(now) != 0 {
			return fmt.Errorf("%w: the limit %s and the pod template ask for different values, %s and %s: leave one out",
				backend.ErrInvalid, name.limit, &was, &now)
		}
	}
	return nil
}

func bytesOf(n int64) resource.Quantity { return *resource.NewQuantity(n, resource.BinarySI) }
