package podspec

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/llmsandbox/llmsandbox/backend"
	"github.com/llmsandbox/llmsandbox/internal/agenthost"
)

// asking is a request for what spec says beside plain's, with a template unless that is empty.
func asking(t testing.TB, template string, spec backend.Spec) Request {
	t.Helper()
	r := plain()
	if template != "" {
		r = with(t, template)
	}
	r.Spec.User, r.Spec.WritableRoot, r.Spec.Workdir, r.Spec.Sudo = spec.User, spec.WritableRoot, spec.Workdir, spec.Sudo
	if agenthost.AsRoot(spec) {
		r.Args = append(r.Args, "--users")
	}
	return r
}

// TestUser has whom the containers run as, for each user that can be asked for.
func TestUser(t *testing.T) {
	const drawn = "1234567:1234567"
	for user, want := range map[string][2]string{
		"": {drawn, drawn}, "12": {"12:0", "12:0"}, "12:root": {"12:0", "12:0"}, "65535:65534": {"65535:65534", "65535:65534"},
		"root": {"0:0", drawn}, "0": {"0:0", drawn}, "00": {"0:0", drawn}, "root:7": {"0:7", drawn}, "0:root": {"0:0", drawn},
	} {
		p := build(t, asking(t, hardSidecars, backend.Spec{User: user}))
		for name, want := range map[string]string{Container: want[0], InitContainer: want[1], "exporter": want[1], "fetch": want[1]} {
			v := viewOf(p, name)
			if got := fmt.Sprintf("%d:%d", *v.user(), *v.group()); got != want {
				t.Errorf("user %q: container %s runs as %s, want %s", user, name, got, want)
			}
			caps := []string{}
			for _, c := range v.own.Capabilities.Add {
				caps = append(caps, string(c))
			}
			root := strings.HasPrefix(want, "0:")
			if root != v.root() || root != slices.Equal(caps, agenthost.RootCapabilities) || !root && len(caps) > 0 {
				t.Errorf("user %q: container %s: root is %v, with the capabilities %q, want %v, and those of root if so", user, name, v.root(), caps, root)
			}
			if !slices.Equal(v.own.Capabilities.Drop, []corev1.Capability{"ALL"}) || isTrue(v.own.Privileged) || *v.own.AllowPrivilegeEscalation || v.seccomp().Type != corev1.SeccompProfileTypeRuntimeDefault {
				t.Errorf("user %q: container %s has %+v, want all else as it is for others", user, name, v.own)
			}
		}
	}
}

// TestRootRefused has what no pod has, alone or together with its template.
func TestRootRefused(t *testing.T) {
	for _, c := range []struct {
		template string
		spec     backend.Spec
		is       error
		want     string
	}{
		{"", backend.Spec{Sudo: true, User: "1000:1000"}, backend.ErrUnsupported, "--user root"},
		{"", backend.Spec{WritableRoot: true}, backend.ErrUnsupported, "--user root"},
		{"", backend.Spec{User: "app"}, backend.ErrUnsupported, "user app: "},
		{"", backend.Spec{User: "1000:staff"}, backend.ErrUnsupported, "by number only"},
		{"", backend.Spec{User: "root:staff"}, backend.ErrUnsupported, "by number only"},
		{"", backend.Spec{User: "65536"}, backend.ErrInvalid, "below 65536"},
		{"", backend.Spec{Workdir: "/.llmsandbox/x"}, backend.ErrInvalid, "/.llmsandbox"},
		{`{spec: {containers: [{securityContext: {runAsUser: 1000}}]}}`, backend.Spec{User: "root"}, backend.ErrInvalid, "the user is given as root and, in the pod template, as 1000:0"},
		{`{spec: {containers: [{securityContext: {runAsGroup: 7}}]}}`, backend.Spec{User: "root"}, backend.ErrInvalid, "as 0:7"},
		{`{spec: {containers: [{securityContext: {runAsNonRoot: true}}]}}`, backend.Spec{User: "root"}, backend.ErrInvalid, "as runAsNonRoot"},
		{`{spec: {securityContext: {runAsUser: 0}}}`, backend.Spec{User: "12"}, backend.ErrInvalid, "the user is given as 12 and, in the pod template, as 0:0"},
		{`{spec: {containers: [{securityContext: {runAsUser: 1000}}]}}`, backend.Spec{User: "12"}, backend.ErrInvalid, "as 1000:0"},
		{`{spec: {containers: [{securityContext: {readOnlyRootFilesystem: true}}]}}`, backend.Spec{User: "root", WritableRoot: true}, backend.ErrInvalid, "as readOnlyRootFilesystem"},
	} {
		if _, err := Build(asking(t, c.template, c.spec)); !errors.Is(err, c.is) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%+v with %s: %v, want %v and %q", c.spec, c.template, err, c.is, c.want)
		}
	}
}

// TestRootMerged has templates that say the same as the options, or something else besides.
func TestRootMerged(t *testing.T) {
	add := func(p *corev1.Pod) []corev1.Capability { return p.Spec.Containers[0].SecurityContext.Capabilities.Add }
	for _, c := range []struct {
		template string
		spec     backend.Spec
		holds    func(*corev1.Pod) bool
	}{
		{`{spec: {containers: [{securityContext: {runAsUser: 0, runAsGroup: 0, runAsNonRoot: false}}]}}`, backend.Spec{User: "root"}, func(p *corev1.Pod) bool { return len(add(p)) == 9 }},
		{`{spec: {securityContext: {runAsUser: 12, runAsGroup: 0}}}`, backend.Spec{User: "12"}, func(p *corev1.Pod) bool { return len(add(p)) == 0 }},
		// Of the pod's user is what is beside root.
		{`{spec: {securityContext: {runAsUser: 1000, runAsNonRoot: true}}}`, backend.Spec{User: "root"}, func(p *corev1.Pod) bool {
			return *viewOf(p, Container).user() == 0 && !viewOf(p, InitContainer).root()
		}},
		{`{spec: {containers: [{securityContext: {capabilities: {add: [NET_RAW, CHOWN]}}}]}}`, backend.Spec{User: "root"}, func(p *corev1.Pod) bool {
			return len(add(p)) == 10 && add(p)[0] == "NET_RAW" && slices.Contains(add(p), "SETPCAP")
		}},
		{`{spec: {volumes: [{name: d, emptyDir: {sizeLimit: 1Gi}}], containers: [{volumeMounts: [{name: d, mountPath: /srv/project/}]}]}}`, backend.Spec{Workdir: "/srv/project"}, func(p *corev1.Pod) bool {
			return !slices.ContainsFunc(p.Spec.Containers[0].VolumeMounts, func(m corev1.VolumeMount) bool { return m.Name == VolumeWorkdir })
		}},
	} {
		if p := build(t, asking(t, c.template, c.spec)); !c.holds(p) {
			t.Errorf("%+v with %s gives %s, which is not what is wanted", c.spec, c.template, text(t, p))
		}
	}
}

// TestRootDisk has what a root file system that can be written to may take of the node's disk.
func TestRootDisk(t *testing.T) {
	for _, c := range []struct {
		template         string
		disk             int64
		limit, request   string
		sidecarIsLimited bool
	}{
		{"", 1 << 30, "1088Mi", "64Mi", false},
		{"", 0, "", "0", false},
		{hardSidecars, 1 << 30, "1088Mi", "64Mi", true},
		{hardSidecars, 0, "", "0", false}, // else its limit would be the pod's
		{`{spec: {volumes: [{name: a, emptyDir: {sizeLimit: 1Gi}}]}}`, 1 << 30, "2112Mi", "1088Mi", false},
		{`{spec: {volumes: [{name: a, emptyDir: {sizeLimit: 1Gi}}]}}`, 0, "", "0", false},
		{`{spec: {containers: [{resources: {limits: {ephemeral-storage: 512Mi}}}]}}`, 1 << 30, "512Mi", "0", false},
	} {
		r := asking(t, c.template, backend.Spec{User: "root", WritableRoot: true})
		r.Spec.Limits.Disk = c.disk
		p := build(t, r)
		resources := p.Spec.Containers[0].Resources
		limit, limited := resources.Limits[corev1.ResourceEphemeralStorage]
		request := resources.Requests[corev1.ResourceEphemeralStorage]
		if limited != (c.limit != "") || limited && limit.String() != c.limit || request.String() != c.request {
			t.Errorf("%d bytes with %q: limit %s (%v), request %s, want %q and %q", c.disk, c.template, &limit, limited, &request, c.limit, c.request)
		}
		if len(p.Spec.Containers) > 1 {
			if _, limited := p.Spec.Containers[1].Resources.Limits[corev1.ResourceEphemeralStorage]; limited != c.sidecarIsLimited {
				t.Errorf("%d bytes with %q: a limit of the sidecar: %v, want %v", c.disk, c.template, limited, c.sidecarIsLimited)
			}
		}
	}
}

// TestControlsOfRoot has what no longer holds where users, a root file system that can be written to, or a working directory were
// asked for.
func TestControlsOfRoot(t *testing.T) {
	for _, c := range []struct {
		template string
		spec     backend.Spec
		lost     []string
		says     map[string]string
	}{
		{"", backend.Spec{Workdir: "/srv/project"}, nil, map[string]string{"filesystem": "/srv/project and /tmp private", "disk": "/srv/project and /tmp each"}},
		{"", backend.Spec{User: "root"}, []string{"user", "pids", "disk"}, map[string]string{
			"user": "root was asked for", "capabilities": "root has those over files, users and processes", "pids": "holds root to none", "disk": "on the node's disk", "filesystem": "the image read-only",
			"user-namespace": "only the node's root",
		}},
		{"", backend.Spec{User: "root", WritableRoot: true}, []string{"user", "pids", "disk"}, map[string]string{"filesystem": "as far as they are written to", "disk": "by eviction only"}},
		{"", backend.Spec{User: "12:12", WritableRoot: true}, []string{"pids", "disk"}, map[string]string{"user": "not root", "capabilities": "none are held", "disk": "by eviction only", "pids": "of that user on the node"}},
		{"", backend.Spec{User: "12"}, []string{"user", "pids"}, map[string]string{"user": "runs with the group of root"}},
		{`{spec: {containers: [{securityContext: {capabilities: {add: [CHOWN, NET_RAW]}}}]}}`, backend.Spec{User: "root"}, []string{"user", "pids", "disk", "capabilities"}, map[string]string{"capabilities": "capabilities.add: NET_RAW"}},
		{`{spec: {hostUsers: false}}`, backend.Spec{User: "root"}, []string{"user", "pids", "disk"}, map[string]string{"user-namespace": "nobody in particular outside"}},
	} {
		r := asking(t, c.template, c.spec)
		caps := Controls(build(t, r), r.Spec.Limits, shown)
		want := without(c.lost...)
		if strings.Contains(c.template, "hostUsers") {
			want = append(want, "user-namespace")
		}
		name := fmt.Sprintf("%+v with %q", c.spec, c.template)
		checkControls(t, name, caps, want)
		for control, says := range c.says {
			k, _ := caps.Get(control)
			if said := k.Detail + k.Why; !strings.Contains(said, says) || !k.Enforced && k.Fix == "" {
				t.Errorf("%s: %+v, want %q, and what to do if it does not hold", name, k, says)
			}
			if !strings.Contains(c.template, "add") && strings.Contains(k.Why, "loosens") && control != "user" {
				t.Errorf("%s: %+v, want no word of the pod template", name, k)
			}
		}
	}
}
