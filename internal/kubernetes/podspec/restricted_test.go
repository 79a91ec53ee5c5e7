package podspec

import (
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/llmsandbox/llmsandbox/backend"
)

// restricted are the rules of the Pod Security Standard "restricted", which contains
// "baseline", by the names that the documentation of Kubernetes has for them.
var restricted = map[string]func(*corev1.Pod) bool{
	"HostProcess": func(p *corev1.Pod) bool {
		return p.Spec.SecurityContext.WindowsOptions == nil && every(p, func(c corev1.Container) bool { return c.SecurityContext.WindowsOptions == nil })
	},
	"Host Namespaces": func(p *corev1.Pod) bool { return !p.Spec.HostNetwork && !p.Spec.HostPID && !p.Spec.HostIPC },
	"Privileged Containers": func(p *corev1.Pod) bool {
		return every(p, func(c corev1.Container) bool { return !isTrue(c.SecurityContext.Privileged) })
	},
	"HostPath Volumes": func(p *corev1.Pod) bool {
		return !slices.ContainsFunc(p.Spec.Volumes, func(v corev1.Volume) bool { return v.HostPath != nil })
	},
	"Host Ports": func(p *corev1.Pod) bool {
		return every(p, func(c corev1.Container) bool {
			return !slices.ContainsFunc(c.Ports, func(p corev1.ContainerPort) bool { return p.HostPort != 0 })
		})
	},
	"Host Probes": func(p *corev1.Pod) bool {
		return every(p, func(c corev1.Container) bool {
			var hosts []string
			for _, p := range []*corev1.Probe{c.LivenessProbe, c.ReadinessProbe, c.StartupProbe} {
				if p != nil && p.HTTPGet != nil {
					hosts = append(hosts, p.HTTPGet.Host)
				}
				if p != nil && p.TCPSocket != nil {
					hosts = append(hosts, p.TCPSocket.Host)
				}
			}
			return strings.Join(hosts, "") == ""
		})
	},
	"AppArmor": func(p *corev1.Pod) bool {
		return p.Spec.SecurityContext.AppArmorProfile == nil && every(p, func(c corev1.Container) bool { return c.SecurityContext.AppArmorProfile == nil })
	},
	"SELinux": func(p *corev1.Pod) bool {
		return p.Spec.SecurityContext.SELinuxOptions == nil && every(p, func(c corev1.Container) bool { return c.SecurityContext.SELinuxOptions == nil })
	},
	"/proc Mount Type": func(p *corev1.Pod) bool {
		return every(p, func(c corev1.Container) bool {
			return c.SecurityContext.ProcMount == nil || *c.SecurityContext.ProcMount == corev1.DefaultProcMount
		})
	},
	"Sysctls": func(p *corev1.Pod) bool { return len(p.Spec.SecurityContext.Sysctls) == 0 },
	"Volume Types": func(p *corev1.Pod) bool {
		return !slices.ContainsFunc(p.Spec.Volumes, func(v corev1.Volume) bool {
			return v.ConfigMap == nil && v.CSI == nil && v.DownwardAPI == nil && v.EmptyDir == nil && v.Ephemeral == nil &&
				v.PersistentVolumeClaim == nil && v.Projected == nil && v.Secret == nil
		})
	},
	"Privilege Escalation": func(p *corev1.Pod) bool {
		return every(p, func(c corev1.Container) bool {
			return c.SecurityContext.AllowPrivilegeEscalation != nil && !*c.SecurityContext.AllowPrivilegeEscalation
		})
	},
	"Running as Non-root": func(p *corev1.Pod) bool {
		return isTrue(p.Spec.SecurityContext.RunAsNonRoot) && every(p, func(c corev1.Container) bool {
			return c.SecurityContext.RunAsNonRoot == nil || *c.SecurityContext.RunAsNonRoot
		})
	},
	"Running as Non-root user": func(p *corev1.Pod) bool {
		zero := func(id *int64) bool { return id != nil && *id == 0 }
		return !zero(p.Spec.SecurityContext.RunAsUser) && every(p, func(c corev1.Container) bool { return !zero(c.SecurityContext.RunAsUser) })
	},
	"Seccomp": func(p *corev1.Pod) bool {
		ok := func(s *corev1.SeccompProfile) bool {
			return s != nil && (s.Type == corev1.SeccompProfileTypeRuntimeDefault || s.Type == corev1.SeccompProfileTypeLocalhost)
		}
		return ok(p.Spec.SecurityContext.SeccompProfile) && every(p, func(c corev1.Container) bool {
			return c.SecurityContext.SeccompProfile == nil || ok(c.SecurityContext.SeccompProfile)
		})
	},
	"Capabilities": func(p *corev1.Pod) bool {
		return every(p, func(c corev1.Container) bool {
			s := c.SecurityContext.Capabilities
			return s != nil && slices.Contains(s.Drop, "ALL") && !slices.ContainsFunc(s.Add, func(c corev1.Capability) bool { return c != "NET_BIND_SERVICE" })
		})
	},
}

// every reports whether all containers hold to a rule.
func every(p *corev1.Pod, rule func(corev1.Container) bool) bool {
	for _, c := range slices.Concat(p.Spec.Containers, p.Spec.InitContainers) {
		if !rule(c) {
			return false
		}
	}
	return true
}

const hardSidecars = `
spec:
  containers: [{name: exporter, image: x}, {name: sandbox, env: [{name: A, value: b}]}]
  initContainers: [{name: fetch, image: x, securityContext: {readOnlyRootFilesystem: true}}]
`

// TestRestricted checks that pods may be made in a namespace that enforces "restricted",
// sidecars that say nothing of their security included.
func TestRestricted(t *testing.T) {
	noUser, agentImage := plain(), plain()
	noUser.UID, agentImage.AgentImage = 0, "agent:1"
	user := asking(t, "", backend.Spec{User: "12", WritableRoot: true, Workdir: "/srv/project"})
	for name, r := range map[string]Request{
		"default": plain(), "no user": noUser, "user": user, "agent image": agentImage, "sidecars": with(t, hardSidecars), "volumes": withVolumes(),
	} {
		p := build(t, r)
		for rule, holds := range restricted {
			if !holds(p) {
				t.Errorf("%s: the rule %q does not hold, want holds(p) = true", name, rule)
			}
		}
	}
}

// TestRestrictedRules breaks each rule, so that none of them is one that always holds.
func TestRestrictedRules(t *testing.T) {
	for rule, template := range map[string]string{
		"Host Namespaces":          `{spec: {hostNetwork: true}}`,
		"Privileged Containers":    `{spec: {containers: [{securityContext: {privileged: true}}]}}`,
		"HostPath Volumes":         `{spec: {volumes: [{name: a, hostPath: {path: /data}}]}}`,
		"Host Ports":               `{spec: {containers: [{ports: [{containerPort: 80, hostPort: 80}]}]}}`,
		"Host Probes":              `{spec: {containers: [{name: sandbox}, {name: a, image: x, livenessProbe: {tcpSocket: {host: 192.0.2.1, port: 80}}}]}}`,
		"AppArmor":                 `{spec: {containers: [{securityContext: {appArmorProfile: {type: Unconfined}}}]}}`,
		"SELinux":                  `{spec: {securityContext: {seLinuxOptions: {user: root}}}}`,
		"/proc Mount Type":         `{spec: {containers: [{securityContext: {procMount: Unmasked}}]}}`,
		"Sysctls":                  `{spec: {securityContext: {sysctls: [{name: kernel.msgmax, value: "1"}]}}}`,
		"Volume Types":             `{spec: {volumes: [{name: a, nfs: {server: a, path: /}}]}}`,
		"Privilege Escalation":     `{spec: {containers: [{securityContext: {allowPrivilegeEscalation: true}}]}}`,
		"Running as Non-root":      `{spec: {securityContext: {runAsUser: 0}}}`,
		"Running as Non-root user": `{spec: {containers: [{securityContext: {runAsUser: 0}}]}}`,
		"Seccomp":                  `{spec: {securityContext: {seccompProfile: {type: Unconfined}}}}`,
		"Capabilities":             `{spec: {containers: [{securityContext: {capabilities: {add: [NET_RAW]}}}]}}`,
	} {
		if restricted[rule](build(t, with(t, template))) {
			t.Errorf("%s: %s does not break it, want restricted[rule](build(t, with(t, template))) = false", rule, template)
		}
	}
	// Nothing of Windows can be built: see what Validate refuses.
	p := build(t, plain())
	p.Spec.SecurityContext.WindowsOptions = &corev1.WindowsSecurityContextOptions{}
	if restricted["HostProcess"](p) {
		t.Error("HostProcess: windowsOptions does not break it: restricted[\"HostProcess\"](p) = true, want false")
	}
}
