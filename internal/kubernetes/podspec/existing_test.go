package podspec

import (
	"errors"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"

	"github.com/llmsandbox/llmsandbox/backend"
)

func podOf(t *testing.T, text string) *corev1.Pod {
	t.Helper()
	var p corev1.Pod
	if err := yaml.UnmarshalStrict([]byte(text), &p); err != nil {
		t.Fatalf("%v in %s", err, text)
	}
	return &p
}

const (
	runs      = `status: {phase: Running, containerStatuses: [{name: app, state: {running: {}}}, {name: side, state: {running: {}}}]}`
	oneRuns   = `{metadata: {name: p}, spec: {containers: [{name: app}]}, ` + runs + `}`
	twoRun    = `{metadata: {name: p}, spec: {containers: [{name: app}, {name: side}]}, ` + runs + `}`
	namedRuns = `{metadata: {name: p, annotations: {kubectl.kubernetes.io/default-container: side}}, spec: {containers: [{name: app}, {name: side}]}, ` + runs + `}`
)

func TestExisting(t *testing.T) {
	for _, c := range []struct {
		name, pod, container, want string
		kind                       error
		why                        string
	}{
		{name: "the only one", pod: oneRuns, want: "app"},
		{name: "named", pod: twoRun, container: "side", want: "side"},
		{name: "the one that the pod names", pod: namedRuns, want: "side"},
		{name: "named against the pod", pod: namedRuns, container: "app", want: "app"},
		{name: "one that starts first and stays", container: "mesh", want: "mesh",
			pod: `{spec: {containers: [{name: app}], initContainers: [{name: mesh, restartPolicy: Always}]}, status: {phase: Running, initContainerStatuses: [{name: mesh, state: {running: {}}}]}}`},
		{name: "one that was added", container: "debug", want: "debug",
			pod: `{spec: {containers: [{name: app}], ephemeralContainers: [{name: debug}]}, status: {phase: Running, ephemeralContainerStatuses: [{name: debug, state: {running: {}}}]}}`},
		{name: "several", pod: twoRun, kind: backend.ErrInvalid, why: "pod p: invalid: it has the containers app, side: name one"},
		{name: "none of that name", pod: twoRun, container: "x", kind: backend.ErrNotFound, why: `it has no container "x", only app, side`},
		{name: "one that has ended", container: "init", kind: backend.ErrNotFound, why: `it has no container "init"`,
			pod: `{metadata: {name: p}, spec: {containers: [{name: app}], initContainers: [{name: init}]}, ` + runs + `}`},
		{name: "a sandbox", kind: backend.ErrInvalid, why: "it is the sandbox a1: attach to it by that id",
			pod: `{metadata: {labels: {app.kubernetes.io/managed-by: llmsandbox, llmsandbox.dev/sandbox: a1}}, spec: {containers: [{name: app}]}}`},
		{name: "deleted", kind: backend.ErrNotFound, why: "it is being deleted",
			pod: `{metadata: {deletionTimestamp: "2026-01-01T00:00:00Z"}, spec: {containers: [{name: app}]}, ` + runs + `}`},
		{name: "failed", kind: backend.ErrNotFound, why: "it has ended: Failed: Evicted: the node was low on memory",
			pod: `{spec: {containers: [{name: app}]}, status: {phase: Failed, reason: Evicted, message: the node was low on memory}}`},
		{name: "succeeded", kind: backend.ErrNotFound, why: "it has ended: Succeeded",
			pod: `{spec: {containers: [{name: app}]}, status: {phase: Succeeded}}`},
		{name: "Windows", kind: backend.ErrUnsupported, why: "the guest agent needs Linux", pod: `{spec: {os: {name: windows}, containers: [{name: app}]}}`},
		{name: "a node with Windows", kind: backend.ErrUnsupported, why: "the guest agent needs Linux", pod: `{spec: {nodeSelector: {kubernetes.io/os: windows}, containers: [{name: app}]}}`},
		{name: "not started", kind: backend.ErrUnsupported, why: "its container app does not run: it has not been started yet",
			pod: `{spec: {containers: [{name: app}]}, status: {phase: Pending}}`},
		{name: "crashes", kind: backend.ErrUnsupported, why: "its container app does not run: it waits: CrashLoopBackOff: back-off 10s",
			pod: `{spec: {containers: [{name: app}]}, status: {phase: Running, containerStatuses: [{name: app, state: {waiting: {reason: CrashLoopBackOff, message: back-off 10s}}}]}}`},
		{name: "ended", kind: backend.ErrUnsupported, why: "its container app does not run: it ended with 137: OOMKilled",
			pod: `{spec: {containers: [{name: app}]}, status: {phase: Running, containerStatuses: [{name: app, state: {terminated: {exitCode: 137, reason: OOMKilled}}}]}}`},
		{name: "nothing is known", kind: backend.ErrUnsupported, why: "its container app does not run: it waits",
			pod: `{spec: {containers: [{name: app}]}, status: {phase: Pending, containerStatuses: [{name: app}]}}`},
	} {
		got, err := Existing(podOf(t, c.pod), c.container)
		if got != c.want || c.kind == nil && err != nil || c.kind != nil && (!errors.Is(err, c.kind) || !strings.Contains(err.Error(), c.why)) {
			t.Errorf("%s: %q, %v, want %q, %q", c.name, got, err, c.want, c.why)
		}
	}
}

func TestExistingControls(t *testing.T) {
	always := []string{"core-dumps", "no-new-privs", "seccomp"}
	for _, c := range []struct {
		name, pod string
		want      []string
	}{
		{"nothing said", `{spec: {containers: [{name: app}]}}`, []string{"ipc", "processes"}},
		{"all said", `{spec: {automountServiceAccountToken: false, hostUsers: false, securityContext: {runAsUser: 1000}, containers: [{name: app,
			securityContext: {readOnlyRootFilesystem: true, capabilities: {drop: [ALL]}}, resources: {limits: {memory: 1Gi, cpu: 1}}}]}}`,
			[]string{"user", "filesystem", "processes", "ipc", "capabilities", "user-namespace", "service-account", "memory", "cpus"}},
		{"of another container", `{spec: {containers: [{name: side, resources: {limits: {memory: 1Gi}}}, {name: app}]}}`, []string{"ipc", "processes"}},
		{"of one that was added", `{spec: {containers: [{name: side}], ephemeralContainers: [{name: app, securityContext: {runAsNonRoot: true}}]}}`, []string{"ipc", "processes", "user"}},
		{"shared", `{spec: {hostIPC: true, shareProcessNamespace: true, containers: [{name: app}]}}`, nil},
		{"some capabilities", `{spec: {containers: [{name: app, securityContext: {capabilities: {drop: [ALL], add: [CHOWN]}}}]}}`, []string{"ipc", "processes"}},
		{"a token", `{spec: {automountServiceAccountToken: false, volumes: [{name: t, projected: {sources: [{serviceAccountToken: {path: t}}]}}], containers: [{name: app, volumeMounts: [{name: t, mountPath: /t}]}]}}`, []string{"ipc", "processes"}},
	} {
		caps := ExistingControls(podOf(t, c.pod), "app")
		checkControls(t, c.name, caps, append(c.want, always...))
		for _, name := range []string{"agent", "network"} {
			if k, ok := caps.Get(name); !ok || k.Enforced || k.Fix == "" {
				t.Errorf("%s: %s: %+v, %v, want ok = true, Enforced false, Fix not empty", c.name, name, k, ok)
			}
		}
	}
	for _, pod := range []string{
		`{spec: {containers: [{name: app, securityContext: {privileged: true}}]}}`,
		`{spec: {volumes: [{name: h, hostPath: {path: /run/containerd/containerd.sock}}], containers: [{name: app, volumeMounts: [{name: h, mountPath: /h}]}]}}`,
	} {
		caps := ExistingControls(podOf(t, pod), "app")
		checkControls(t, pod, caps, nil)
		if k, ok := caps.Get("isolation"); !ok || k.Enforced {
			t.Errorf("%s: %+v, want ok = true, Enforced false", pod, k)
		}
	}
}
