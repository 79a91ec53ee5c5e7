package podspec

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
)

// settle makes a merged pod consistent: the order of its containers, what follows from
// what the template asks for, and what the template's own containers say nothing of.
func settle(t *corev1.PodTemplateSpec, over *corev1.PodTemplateSpec, r Request) {
	s := &t.Spec
	// The sandbox's own come first, then the template's as they are there.
	s.Containers = inOrder(s.Containers, Container, over.Spec.Containers)
	s.InitContainers = inOrder(s.InitContainers, InitContainer, over.Spec.InitContainers)
	slices.SortStableFunc(s.Volumes, func(a, b corev1.Volume) int { return rank(a) - rank(b) })

	if p := over.Spec.DNSPolicy; p != "" && p != corev1.DNSNone {
		s.DNSConfig = over.Spec.DNSConfig.DeepCopy()
	}
	allowRoot(s, over)

	sandbox := &s.Containers[0]
	settleSecurity(sandbox.SecurityContext)
	addDisk(&sandbox.Resources, over)
	addRequests(&sandbox.Resources)
	agent := &s.InitContainers[0]
	agent.Resources = sameAs(sandbox.Resources)
	if r.AgentImage == "" {
		agent.Image, agent.ImagePullPolicy = sandbox.Image, sandbox.ImagePullPolicy
	}
	for i := range s.Containers[1:] {
		hardenSidecar(&s.Containers[1+i])
	}
	for i := range s.InitContainers[1:] {
		hardenSidecar(&s.InitContainers[1+i])
	}
}

// inOrder has our own container first, then the others as the template has them.
func inOrder(all []corev1.Container, own string, template []corev1.Container) []corev1.Container {
	place := func(c corev1.Container) int {
		if c.Name == own {
			return -1
		}
		return slices.IndexFunc(template, func(t corev1.Container) bool { return t.Name == c.Name })
	}
	slices.SortStableFunc(all, func(a, b corev1.Container) int { return place(a) - place(b) })
	return all
}

// rank orders the sandbox's own volumes, before the template's.
func rank(v corev1.Volume) int {
	own := []string{VolumeAgent, VolumeWorkdir, VolumeTemp, volumeShm, volumeLayers}
	if i := slices.Index(own, v.Name); i >= 0 {
		return i
	}
	return len(own)
}

// allowRoot lets a container run as root if the template asks for it. The default would have
// the node refuse the pod. A template that says both is left as it is.
func allowRoot(s *corev1.PodSpec, over *corev1.PodTemplateSpec) {
	if p := over.Spec.SecurityContext; p != nil && p.RunAsNonRoot == nil && p.RunAsUser != nil && *p.RunAsUser == 0 {
		s.SecurityContext.RunAsNonRoot = nil
	}
	for _, all := range [][]corev1.Container{s.Containers, s.InitContainers} {
		for i := range all {
			c := all[i].SecurityContext
			if c != nil && c.RunAsNonRoot == nil && c.RunAsUser != nil && *c.RunAsUser == 0 {
				c.RunAsNonRoot = new(false)
			}
		}
	}
}

// settleSecurity takes back defaults that the cluster refuses beside what the template
// asks for.
func settleSecurity(c *corev1.SecurityContext) {
	// Whatever else it drops, and what it adds is added to that.
	c.Capabilities.Drop = []corev1.Capability{"ALL"}
	if isTrue(c.Privileged) || slices.Contains(c.Capabilities.Add, "SYS_ADMIN") || slices.Contains(c.Capabilities.Add, "CAP_SYS_ADMIN") {
		c.AllowPrivilegeEscalation = nil
	}
}

// hardenSidecar gives a container of the template's what it says nothing of. Its image
// may need a root that it can write to.
func hardenSidecar(c *corev1.Container) {
	if c.SecurityContext == nil {
		c.SecurityContext = &corev1.SecurityContext{}
	}
	s := c.SecurityContext
	if s.Capabilities == nil && !isTrue(s.Privileged) {
		s.Capabilities = &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}}
	}
	if s.AllowPrivilegeEscalation == nil && !isTrue(s.Privileged) && (s.Capabilities == nil || len(s.Capabilities.Add) == 0) {
		s.AllowPrivilegeEscalation = new(false)
	}
	shareDisk(&c.Resources)
}

func isTrue(b *bool) bool { return b != nil && *b }
