package podspec

import (
	"fmt"
	"path"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/llmsandbox/llmsandbox/internal/environ"
)

// ours is the index of the template's container that is laid over the sandbox's, and -1
// where all are sidecars: it is named "sandbox", or is the only one and has no name.
func ours(all []corev1.Container) int {
	for i, c := range all {
		if c.Name == Container || c.Name == "" && len(all) == 1 {
			return i
		}
	}
	return -1
}

// containers checks the template's containers.
func (f *faults) containers(s corev1.PodSpec) {
	seen := map[string]bool{}
	own := ours(s.Containers)
	for i, c := range s.Containers {
		field := fmt.Sprintf("spec.containers[%d]", i)
		if i == own {
			seen[Container] = true
			f.sandbox(field, c)
			continue
		}
		f.sidecar(field, c, seen)
	}
	for i, c := range s.InitContainers {
		f.sidecar(fmt.Sprintf("spec.initContainers[%d]", i), c, seen)
	}
}

// sidecar checks a container beside the sandbox's, or before it.
func (f *faults) sidecar(field string, c corev1.Container, seen map[string]bool) {
	switch {
	case c.Name == "":
		f.add(field+".name", "it is missing: the sandbox's own container is %q, others need a name of their own", Container)
	case c.Name == InitContainer:
		f.add(field+".name", "the container that brings the agent is %q: choose another", InitContainer)
	case c.Name == Container || seen[c.Name]:
		f.add(field+".name", "%q is there already: choose another", c.Name)
	case c.Image == "":
		f.add(field+".image", "%q has no image: what is meant for the sandbox's own container goes to the one named %q", c.Name, Container)
	}
	seen[c.Name] = true
	for i, m := range c.VolumeMounts {
		if strings.HasPrefix(m.Name, volumePrefix) && m.Name != VolumeWorkdir && m.Name != VolumeTemp {
			f.add(fmt.Sprintf("%s.volumeMounts[%d].name", field, i), "of llmsandbox's own volumes, only %s and %s may be mounted, not %s", VolumeWorkdir, VolumeTemp, m.Name)
		}
	}
	if c.SecurityContext != nil && c.SecurityContext.WindowsOptions != nil {
		f.add(field+".securityContext.windowsOptions", "sandboxes need Linux")
	}
}

// sandbox checks what is laid over the sandbox's container.
func (f *faults) sandbox(field string, c corev1.Container) {
	const agent = "the container's own program is the agent"
	const beside = "what runs beside the agent escapes its limits: put it on a sidecar"
	for _, x := range []struct {
		set        bool
		field, why string
	}{
		{len(c.Command) > 0, "command", agent + ": leave it out"},
		{len(c.Args) > 0, "args", agent + ": leave it out"},
		{c.Stdin || c.StdinOnce || c.TTY, "stdin", agent + ", and nothing attaches to it: leave stdin, stdinOnce and tty out"},
		{c.Lifecycle != nil, "lifecycle", beside},
		{c.LivenessProbe != nil, "livenessProbe", beside},
		{c.ReadinessProbe != nil, "readinessProbe", beside},
		{c.StartupProbe != nil, "startupProbe", beside},
		{c.RestartPolicy != nil || len(c.RestartPolicyRules) > 0, "restartPolicy", "a sandbox that has ended stays so: leave it out"},
		{c.SecurityContext != nil && c.SecurityContext.WindowsOptions != nil, "securityContext.windowsOptions", "sandboxes need Linux"},
		{c.TerminationMessagePath != "", "terminationMessagePath", "code could fill the node's disk through it: leave it out"},
	} {
		if x.set {
			f.add(field+"."+x.field, "%s", x.why)
		}
	}
	for i, e := range c.Env {
		if strings.HasPrefix(e.Name, environ.Own) {
			f.add(fmt.Sprintf("%s.env[%d].name", field, i), "%s: variables that begin with %s are the agent's own: choose another name", e.Name, environ.Own)
		}
	}
	for i, m := range c.VolumeMounts {
		f.mount(fmt.Sprintf("%s.volumeMounts[%d]", field, i), m)
	}
}

// mount checks what is mounted into the sandbox.
func (f *faults) mount(field string, m corev1.VolumeMount) {
	at := path.Clean(m.MountPath)
	switch {
	case !path.IsAbs(m.MountPath):
		f.add(field+".mountPath", "%q is not absolute", m.MountPath)
	case at == "/" || inAgentDir(at):
		f.add(field+".mountPath", "%s: it would hide the agent: choose another", m.MountPath)
	case strings.HasPrefix(m.Name, volumePrefix):
		f.add(field+".name", "%s is mounted already: leave it out", m.Name)
	}
}

func inAgentDir(p string) bool {
	p = path.Clean(p)
	return p == AgentDir || strings.HasPrefix(p, AgentDir+"/")
}
