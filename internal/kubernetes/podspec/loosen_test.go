package podspec

import (
	"strings"
	"testing"
)

// TestLoosened has each thing that a template may loosen, what no longer holds then, and
// what says so.
func TestLoosened(t *testing.T) {
	everything := held
	for _, c := range []struct {
		template string
		lost     []string
		control  string // that says why
		why      string
	}{
		{template: `{metadata: {labels: {a: b}}}`},
		{template: `{spec: {automountServiceAccountToken: false, hostNetwork: false, hostPID: false, dnsPolicy: ClusterFirst}}`},
		{template: `{spec: {hostNetwork: true}}`, lost: []string{"network"}, control: "network", why: "hostNetwork: the node's own network"},
		{template: `{spec: {containers: [{ports: [{containerPort: 8080, hostPort: 80}]}]}}`, lost: []string{"network"}, control: "network", why: "hostPort: port 8080 is published on the node's port 80"},
		{template: `{spec: {containers: [{ports: [{containerPort: 8080}]}]}}`},
		{template: `{spec: {hostPID: true}}`, lost: []string{"agent", "processes"}, control: "processes", why: "hostPID: code sees the node's processes"},
		{template: `{spec: {hostPID: true}}`, lost: []string{"agent", "processes"}, control: "agent", why: "hostPID: the agent is not process 1"},
		{template: `{spec: {shareProcessNamespace: true}}`, lost: []string{"agent", "processes"}, control: "agent", why: "shareProcessNamespace: the agent is not process 1"},
		{template: `{spec: {hostIPC: true}}`, lost: []string{"ipc"}, control: "ipc", why: "hostIPC: shared memory"},
		{template: `{spec: {enableServiceLinks: true}}`, control: "service-links", why: "enableServiceLinks: "},
		{template: `{spec: {automountServiceAccountToken: true}}`, lost: []string{"service-account"}, control: "service-account", why: "automountServiceAccountToken: code may ask"},
		{template: `{spec: {volumes: [{name: a, projected: {sources: [{serviceAccountToken: {path: t}}]}}], containers: [{volumeMounts: [{name: a, mountPath: /a}]}]}}`,
			lost: []string{"service-account"}, control: "service-account", why: "volumes: a at /a: a token"},
		{template: `{spec: {volumes: [{name: a, projected: {sources: [{configMap: {name: c}}]}}], containers: [{volumeMounts: [{name: a, mountPath: /a}]}]}}`},
		{template: `{spec: {containers: [{securityContext: {privileged: true}}]}}`, lost: everything, control: "isolation", why: "privileged: all capabilities and devices"},
		{template: `{spec: {containers: [{securityContext: {capabilities: {add: [NET_RAW, CHOWN]}}}]}}`, lost: []string{"capabilities"}, control: "capabilities", why: "capabilities.add: NET_RAW, CHOWN"},
		{template: `{spec: {containers: [{securityContext: {capabilities: {add: [SYS_ADMIN]}}}]}}`, lost: []string{"capabilities", "no-new-privs"}, control: "capabilities", why: "SYS_ADMIN"},
		{template: `{spec: {containers: [{securityContext: {capabilities: {drop: [NET_RAW]}}}]}}`},
		{template: `{spec: {containers: [{securityContext: {allowPrivilegeEscalation: true}}]}}`, lost: []string{"no-new-privs"}, control: "no-new-privs", why: "allowPrivilegeEscalation: programs may gain"},
		{template: `{spec: {containers: [{securityContext: {readOnlyRootFilesystem: false}}]}}`, lost: []string{"disk"}, control: "disk", why: "of the root file system it holds by eviction only"},
		{template: `{spec: {securityContext: {seccompProfile: {type: Unconfined}}}}`, lost: []string{"seccomp"}, control: "seccomp", why: "seccompProfile Unconfined"},
		{template: `{spec: {containers: [{securityContext: {seccompProfile: {type: Localhost, localhostProfile: a}}}]}}`, lost: []string{"seccomp"}, control: "seccomp", why: "seccompProfile Localhost"},
		{template: `{spec: {containers: [{securityContext: {appArmorProfile: {type: Unconfined}}}]}}`, control: "apparmor", why: "appArmorProfile Unconfined"},
		{template: `{spec: {securityContext: {appArmorProfile: {type: RuntimeDefault}}}}`},
		{template: `{spec: {securityContext: {seLinuxOptions: {level: s0}}}}`, control: "selinux", why: "seLinuxOptions"},
		{template: `{spec: {containers: [{securityContext: {seLinuxOptions: {level: s0}}}]}}`, control: "selinux", why: "seLinuxOptions"},
		{template: `{spec: {hostUsers: false, containers: [{securityContext: {procMount: Unmasked}}]}}`, control: "masked-paths", why: "procMount Unmasked"},
		{template: `{spec: {securityContext: {runAsUser: 0}}}`, lost: []string{"user", "pids"}, control: "user", why: "runAsUser: code may run as root"},
		{template: `{spec: {containers: [{securityContext: {runAsUser: 0}}]}}`, lost: []string{"user", "pids"}, control: "user", why: "runAsUser: code may run as root"},
		{template: `{spec: {securityContext: {runAsUser: 1000}}}`, lost: []string{"pids"}},
		{template: `{spec: {securityContext: {runAsGroup: 0}}}`, lost: []string{"user"}, control: "user", why: "runAsGroup: code runs with the group of root"},
		{template: `{spec: {containers: [{securityContext: {runAsGroup: 0}}]}}`, lost: []string{"user"}, control: "user", why: "runAsGroup"},
		{template: `{spec: {securityContext: {fsGroup: 0}}}`, lost: []string{"user"}, control: "user", why: "fsGroup: code runs with the group of root"},
		{template: `{spec: {securityContext: {fsGroup: 2000}}}`},
		{template: `{spec: {securityContext: {supplementalGroups: [10, 20]}}}`, lost: []string{"user"}, control: "user", why: "supplementalGroups: code belongs to 10, 20 too"},
		{template: `{spec: {containers: [{resources: {limits: {example.com/gpu: 2}}}]}}`, control: "devices", why: "resources: 2 example.com/gpu"},
		{template: `{spec: {resourceClaims: [{name: g, resourceClaimName: g}], containers: [{resources: {claims: [{name: g}]}}]}}`, control: "devices", why: "resources: what claim g gives"},
		{template: `{spec: {containers: [{volumeDevices: [{name: a, devicePath: /dev/a}]}]}}`, control: "devices", why: "volumeDevices: volume a at /dev/a"},
		{template: mounted(`hostPath: {path: /data}`, false), lost: []string{"filesystem", "disk"}, control: "filesystem", why: "volumes: the node's /data at /data, writable"},
		{template: mounted(`hostPath: {path: /data}`, true), lost: []string{"filesystem"}, control: "filesystem", why: "volumes: the node's /data at /data, read-only"},
		{template: mounted(`hostPath: {path: /var/run/docker.sock}`, true), lost: everything, control: "isolation", why: "volumes: the node's /var/run/docker.sock at /data"},
		{template: mounted(`hostPath: {path: /etc/../}`, true), lost: everything, control: "isolation", why: "as good as root on the node"},
		{template: mounted(`hostPath: {path: /etc/cron.d}`, false), lost: everything, control: "isolation", why: "/etc/cron.d"},
		{template: mounted(`hostPath: {path: /etc/ssl}`, true), lost: []string{"filesystem"}, control: "filesystem", why: "read-only"},
		{template: mounted(`persistentVolumeClaim: {claimName: a}`, false), lost: []string{"filesystem", "disk"}, control: "disk", why: "volumes: what is written to /data is not limited"},
		{template: mounted(`persistentVolumeClaim: {claimName: a}`, true), lost: []string{"filesystem"}, control: "filesystem", why: "volumes: a at /data, read-only"},
		{template: mounted(`nfs: {server: a, path: /}`, false), lost: []string{"filesystem", "disk"}, control: "filesystem", why: "writable"},
		{template: mounted(`secret: {secretName: a}`, false)},
		{template: mounted(`configMap: {name: a}`, false)},
		{template: mounted(`downwardAPI: {}`, false)},
		{template: mounted(`image: {reference: a}`, false)},
		{template: mounted(`emptyDir: {sizeLimit: 5Gi}`, false), lost: []string{"disk"}, control: "disk", why: "volumes: /data holds up to 5Gi besides"},
		{template: mounted(`emptyDir: {sizeLimit: 5Gi}`, true)},
		{template: mounted(`emptyDir: {medium: Memory}`, false), lost: []string{"disk"}, control: "disk", why: "by the memory limit only"},
		{template: `{spec: {volumes: [{name: a, hostPath: {path: /}}]}}`}, // in no container of ours
		{template: `{spec: {containers: [{name: sandbox}, {name: b, image: x, volumeMounts: [{name: llmsandbox-workdir, mountPath: /w}]}]}}`, lost: []string{"filesystem"}, control: "filesystem", why: "container b has llmsandbox-workdir too"},
		{template: `{spec: {initContainers: [{name: b, image: x, volumeMounts: [{name: llmsandbox-tmp, mountPath: /w}]}]}}`, lost: []string{"filesystem"}, control: "filesystem", why: "container b has llmsandbox-tmp too"},
		{template: `{spec: {hostNetwork: true, containers: [{ports: [{containerPort: 1, hostPort: 1}]}]}}`, lost: []string{"network"}, control: "network", why: "policy holds; hostPort"},
	} {
		r := with(t, c.template)
		caps := Controls(build(t, r), r.Spec.Limits, shown)
		want := without(c.lost...)
		if strings.Contains(c.template, "hostUsers: false") {
			want = append(want, "user-namespace")
		}
		checkControls(t, c.template, caps, want)
		if c.control == "" {
			continue
		}
		k, _ := caps.Get(c.control)
		if k.Enforced || !strings.Contains(strings.ToLower(k.Why), strings.ToLower(c.why)) {
			t.Errorf("%s: %+v, want %q", c.template, k, c.why)
		}
	}
}

func mounted(source string, readOnly bool) string {
	mount := "{name: a, mountPath: /data}"
	if readOnly {
		mount = "{name: a, mountPath: /data, readOnly: true}"
	}
	return "{spec: {volumes: [{name: a, " + source + "}], containers: [{volumeMounts: [" + mount + "]}]}}"
}
