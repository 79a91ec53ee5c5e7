package podspec

import (
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/llmsandbox/llmsandbox/backend"
)

// held are the controls of the default pod that hold.
var held = []string{
	"user", "agent", "filesystem", "processes", "network", "ipc", "capabilities", "no-new-privs", "core-dumps", "seccomp",
	"service-account", "memory", "cpus", "pids", "disk", "abandoned",
}

// checkControls compares which of the controls hold, and that each says by what, or why not.
func checkControls(t *testing.T, name string, c backend.Capabilities, want []string) {
	t.Helper()
	var got []string
	seen := map[string]bool{}
	for _, k := range c.Controls {
		if seen[k.Name] {
			t.Errorf("%s: %s is declared twice, want once", name, k.Name)
		}
		seen[k.Name] = true
		if k.Enforced && k.By == "" || !k.Enforced && k.Why == "" {
			t.Errorf("%s: %+v: want what enforces it, or why nothing does", name, k)
		}
		if strings.Contains(k.Why, "loosens") && k.Fix == "" {
			t.Errorf("%s: %+v: want what to do", name, k)
		}
		if k.Enforced {
			got = append(got, k.Name)
		}
	}
	slices.Sort(got)
	want = slices.Sorted(slices.Values(want))
	if !slices.Equal(got, want) {
		t.Errorf("%s: controls are %v, want %v", name, got, want)
	}
}

func without(names ...string) []string {
	return slices.DeleteFunc(slices.Clone(held), func(n string) bool { return slices.Contains(names, n) })
}

func TestControlsOfTheDefault(t *testing.T) {
	r := plain()
	c := Controls(build(t, r), r.Spec.Limits, shown)
	checkControls(t, "default", c, held)
	if c.Backend != "kubernetes" || c.Isolation != "pod" {
		t.Errorf("backend %q, isolation %q, want Backend = \"kubernetes\", Isolation = \"pod\"", c.Backend, c.Isolation)
	}
	for _, name := range []string{"user-namespace", "landlock"} {
		if k, ok := c.Get(name); !ok || k.Fix == "" {
			t.Errorf("%s: %+v, %v, want ok = true, Fix not empty", name, k, ok)
		}
	}
	for _, k := range c.Controls {
		if strings.Contains(k.Why, "loosens") {
			t.Errorf("the default loosens: %+v, want Why without \"loosens\"", k)
		}
	}
}

// TestControlsOfLimits has limits that were not asked for, and those that do not hold.
func TestControlsOfLimits(t *testing.T) {
	none := plain()
	none.Spec.Limits = backend.Limits{}
	none.Args = []string{"--listen", "@a"}
	c := Controls(build(t, none), none.Spec.Limits, shown)
	checkControls(t, "none", c, without("memory", "cpus", "pids", "disk"))
	for _, name := range []string{"memory", "cpus", "pids", "disk"} {
		if k, _ := c.Get(name); k.Why != backend.NotAsked {
			t.Errorf("%+v, want Why = \"no limit was asked for\"", k)
		}
	}
	// A pod that has none of what was asked for says so and what to do.
	c = Controls(build(t, none), plain().Spec.Limits, shown)
	checkControls(t, "missing", c, without("memory", "cpus", "pids", "disk"))
	for _, name := range []string{"memory", "cpus", "pids", "disk"} {
		if k, _ := c.Get(name); k.Fix == "" || k.By != "" {
			t.Errorf("%+v, want Fix not empty, By empty", k)
		}
	}
}

// TestControlsOfProcesses has the users whose processes are counted, and are not.
func TestControlsOfProcesses(t *testing.T) {
	for _, c := range []struct {
		name, template string
		uid            int64
		by, why        string
	}{
		{name: "drawn", uid: 200_000, by: "RLIMIT_NPROC"},
		{name: "of the image", uid: 0, by: "RLIMIT_NPROC", why: "of all processes of that user on the node"},
		{name: "of the template", template: `{spec: {securityContext: {runAsUser: 1000}}}`, uid: 200_000, by: "RLIMIT_NPROC", why: "of all processes of that user on the node"},
		{name: "of the template's container", template: `{spec: {containers: [{securityContext: {runAsUser: 1000}}]}}`, uid: 200_000, by: "RLIMIT_NPROC", why: "of all processes of that user on the node"},
		{name: "mapped", template: `{spec: {hostUsers: false, securityContext: {runAsUser: 1000}}}`, uid: 200_000, by: "RLIMIT_NPROC"},
		{name: "root", template: `{spec: {securityContext: {runAsUser: 0}}}`, uid: 200_000, why: "the kernel holds root to none"},
		{name: "runtime class", template: `{spec: {runtimeClassName: gvisor}}`, uid: 200_000, why: "the kernel of runtime class gvisor"},
	} {
		r := plain()
		if c.template != "" {
			r = with(t, c.template)
		}
		r.UID = c.uid
		k, _ := Controls(build(t, r), r.Spec.Limits, shown).Get("pids")
		if k.Enforced != (c.why == "") || k.By != c.by || !strings.Contains(k.Why, c.why) || !k.Enforced && k.Fix == "" {
			t.Errorf("%s: %+v, want Enforced = %v, By = %v, Why containing %q, Enforced true or Fix not empty", c.name, k, c.why == "", c.by, c.why)
		}
	}
}

func TestControlsOfNetworkAndOwner(t *testing.T) {
	r := plain()
	k, _ := Controls(build(t, r), r.Spec.Limits, Policies{}).Get("network")
	if k.Enforced || k.By != "NetworkPolicy" || !strings.Contains(k.Fix, "doctor --backend kubernetes") {
		t.Errorf("not known: %+v, want Enforced false, By = \"NetworkPolicy\", Fix containing \"doctor --backend kubernetes\"", k)
	}
	p := build(t, r)
	p.Labels[LabelNetwork] = "open"
	if k, _ := Controls(p, r.Spec.Limits, shown).Get("network"); k.Enforced {
		t.Errorf("without the label: %+v, want Enforced false", k)
	}
	r = with(t, hardSidecars)
	if k, _ := Controls(build(t, r), r.Spec.Limits, shown).Get("network"); !strings.HasSuffix(k.Detail, "the loopback is shared with exporter") {
		t.Errorf("with a sidecar: %+v, want Detail ending in \"the loopback is shared with exporter\"", k)
	}
	r.OwnerRef = nil
	if k, _ := Controls(build(t, r), r.Spec.Limits, shown).Get("abandoned"); k.Enforced || k.Fix == "" {
		t.Errorf("without an owner: %+v, want Enforced false, Fix not empty", k)
	}
}

func TestControlsOfRuntimeClass(t *testing.T) {
	r := plain()
	r.RuntimeClass = "gvisor"
	c := Controls(build(t, r), r.Spec.Limits, shown)
	if c.Isolation != "pod (runtime class gvisor)" {
		t.Errorf("isolation %q, want \"pod (runtime class gvisor)\"", c.Isolation)
	}
	checkControls(t, "runtime class", c, without("agent", "pids"))
	if k, _ := c.Get("agent"); !strings.Contains(k.Why, "runtime class gvisor") || !strings.Contains(k.Why, "lost") || k.Fix == "" {
		t.Errorf("%+v, want Why containing \"runtime class gvisor\", Why containing \"lost\", Fix not empty", k)
	}
}

func TestControlsOfWhatTheClusterAdds(t *testing.T) {
	r := plain()
	p := build(t, r)
	// A mesh's admission webhook adds a container, and another one a token.
	always := corev1.ContainerRestartPolicyAlways
	p.Spec.InitContainers = append(p.Spec.InitContainers, corev1.Container{Name: "mesh", RestartPolicy: &always})
	p.Spec.Volumes = append(p.Spec.Volumes, corev1.Volume{Name: "kube-api-access-x", VolumeSource: corev1.VolumeSource{
		Projected: &corev1.ProjectedVolumeSource{Sources: []corev1.VolumeProjection{{ServiceAccountToken: &corev1.ServiceAccountTokenProjection{Path: "token"}}}},
	}})
	p.Spec.Containers[0].VolumeMounts = append(p.Spec.Containers[0].VolumeMounts, corev1.VolumeMount{Name: "kube-api-access-x", MountPath: "/var/run/secrets/kubernetes.io/serviceaccount", ReadOnly: true})
	c := Controls(p, r.Spec.Limits, shown)
	checkControls(t, "added", c, without("service-account"))
	if k, _ := c.Get("network"); !strings.Contains(k.Detail, "shared with mesh") {
		t.Errorf("%+v, want Detail containing \"shared with mesh\"", k)
	}
}
