package podspec

import (
	"fmt"
	"math"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/llmsandbox/llmsandbox/backend"
)

// What is asked for a sandbox by default: little, so that many fit on a node. The limits
// are what it may take when it is there.
const (
	requestMilliCPU = 25
	requestMemory   = 32 << 20
	// requestShare is the part of the memory limit that is asked for, if that is more.
	requestShare = 8
	// ephemeral is what the agent and the logs, which stay empty, may take of the node's
	// disk. It is held by eviction.
	ephemeral = 64 << 20
)

// limitResources sets the limits of the sandbox's container.
func limitResources(r Request) corev1.ResourceList {
	l := corev1.ResourceList{corev1.ResourceEphemeralStorage: bytesOf(ephemeral + r.LayerBytes)}
	if m := r.Spec.Limits.Memory; m > 0 {
		l[corev1.ResourceMemory] = bytesOf(m)
	}
	if c := r.Spec.Limits.CPUs; c > 0 {
		l[corev1.ResourceCPU] = *resource.NewMilliQuantity(int64(math.Ceil(c*1000)), resource.DecimalSI)
	}
	return l
}

// addRequests asks for little of what the template does not ask for, and never for more
// than the limit.
func addRequests(r *corev1.ResourceRequirements) {
	memory := bytesOf(requestMemory)
	if l, ok := r.Limits[corev1.ResourceMemory]; ok {
		memory = bytesOf(max(requestMemory, l.Value()/requestShare))
	}
	for name, q := range map[corev1.ResourceName]resource.Quantity{
		corev1.ResourceMemory: memory,
		corev1.ResourceCPU:    *resource.NewMilliQuantity(requestMilliCPU, resource.DecimalSI),
		// As much as the limit, and there is nothing else that it could be.
		corev1.ResourceEphemeralStorage: r.Limits[corev1.ResourceEphemeralStorage],
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
