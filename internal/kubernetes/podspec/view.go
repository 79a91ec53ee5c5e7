package podspec

import (
	"cmp"
	"iter"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
)

// A view is a pod as one of its containers sees it: what the container does not say, the
// pod says.
type view struct {
	pod       *corev1.Pod
	container corev1.Container
	podWide   corev1.PodSecurityContext
	own       corev1.SecurityContext
}

// viewOf is a pod as the container of that name sees it. There is nothing to see where it
// has no such container.
func viewOf(p *corev1.Pod, name string) view {
	v := view{pod: p}
	// One that starts first and stays is an init container too.
	all := slices.Concat(p.Spec.Containers, p.Spec.InitContainers)
	for _, c := range p.Spec.EphemeralContainers {
		all = append(all, corev1.Container(c.EphemeralContainerCommon))
	}
	if i := slices.IndexFunc(all, func(c corev1.Container) bool { return c.Name == name }); i >= 0 {
		v.container = all[i]
	}
	if s := p.Spec.SecurityContext; s != nil {
		v.podWide = *s
	}
	if s := v.container.SecurityContext; s != nil {
		v.own = *s
	}
	return v
}

// user is the user of the code; nil: the image decides.
func (v view) user() *int64 {
	if v.own.RunAsUser != nil {
		return v.own.RunAsUser
	}
	return v.podWide.RunAsUser
}

func (v view) group() *int64 {
	if v.own.RunAsGroup != nil {
		return v.own.RunAsGroup
	}
	return v.podWide.RunAsGroup
}

// root reports whether the code may be root: where nothing is said, the image decides.
func (v view) root() bool {
	if uid := v.user(); uid != nil {
		return *uid == 0
	}
	nonRoot := cmp.Or(v.own.RunAsNonRoot, v.podWide.RunAsNonRoot)
	return !isTrue(nonRoot)
}

func (v view) seccomp() *corev1.SeccompProfile {
	if v.own.SeccompProfile != nil {
		return v.own.SeccompProfile
	}
	return v.podWide.SeccompProfile
}

func (v view) appArmor() *corev1.AppArmorProfile {
	if v.own.AppArmorProfile != nil {
		return v.own.AppArmorProfile
	}
	return v.podWide.AppArmorProfile
}

func (v view) seLinux() *corev1.SELinuxOptions {
	if v.own.SELinuxOptions != nil {
		return v.own.SELinuxOptions
	}
	return v.podWide.SELinuxOptions
}

func (v view) runtimeClass() string {
	if c := v.pod.Spec.RuntimeClassName; c != nil {
		return *c
	}
	return ""
}

// limit reports whether the container has a limit of a resource.
func (v view) limit(name corev1.ResourceName) bool {
	q, ok := v.container.Resources.Limits[name]
	return ok && !q.IsZero()
}

// others are the names of the containers that run beside this one.
func (v view) others() []string {
	var names []string
	for _, c := range v.pod.Spec.Containers {
		if c.Name != v.container.Name {
			names = append(names, c.Name)
		}
	}
	for _, c := range v.pod.Spec.InitContainers {
		if c.Name != v.container.Name && c.RestartPolicy != nil && *c.RestartPolicy == corev1.ContainerRestartPolicyAlways {
			names = append(names, c.Name)
		}
	}
	return names
}

// volume is the volume that a mount is of.
func (v view) volume(name string) corev1.Volume {
	for _, x := range v.pod.Spec.Volumes {
		if x.Name == name {
			return x
		}
	}
	return corev1.Volume{Name: name}
}

// sorted goes through a map in the order of its keys, so that errors and pods are the
// same every time.
func sorted[V any](m map[string]V) iter.Seq2[string, V] {
	return func(yield func(string, V) bool) {
		for _, k := range slices.Sorted(maps.Keys(m)) {
			if !yield(k, m[k]) {
				return
			}
		}
	}
}
