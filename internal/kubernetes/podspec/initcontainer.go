package podspec

import (
	corev1 "k8s.io/api/core/v1"
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
