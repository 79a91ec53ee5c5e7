package podspec

import (
	"errors"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/llmsandbox/llmsandbox/backend"
)

// TestMerged has what becomes of the default under templates that change what it says.
func TestMerged(t *testing.T) {
	type pod = *corev1.Pod
	sandbox := func(p pod) corev1.Container { return p.Spec.Containers[0] }
	quantity := func(l corev1.ResourceList, name corev1.ResourceName) string {
		q := l[name]
		return q.String()
	}
	for _, c := range []struct {
		name, template string
		holds          func(pod) bool
	}{
		{"labels are added", `{metadata: {labels: {a: b}}}`, func(p pod) bool { return p.Labels["a"] == "b" && p.Labels[LabelSandbox] == "k7q2m9" }},
		{"annotations are added", `{metadata: {annotations: {a: b}}}`, func(p pod) bool { return p.Annotations["a"] == "b" && p.Annotations[AnnotationGuest] == "{}" }},
		{"the default's own annotations may change", `{metadata: {annotations: {kubectl.kubernetes.io/default-container: x}}}`, func(p pod) bool { return p.Annotations[annotationContainer] == "x" }},
		{"a container without a name is the sandbox's", `{spec: {containers: [{env: [{name: A, value: b}]}]}}`, func(p pod) bool {
			return len(p.Spec.Containers) == 1 && len(sandbox(p).Env) == 2 && sandbox(p).Command[0] == AgentFile
		}},
		{"so is the only one, whatever its name", `{spec: {containers: [{name: app, image: registry.example/python:3.13, tty: true, stdin: true, stdinOnce: true}]}}`, func(p pod) bool {
			return len(p.Spec.Containers) == 1 && sandbox(p).Name == Container && !sandbox(p).TTY && !sandbox(p).Stdin && !sandbox(p).StdinOnce
		}},
		{"and the one without a name among others", `{spec: {containers: [{name: a, image: x}, {env: [{name: A, value: b}]}]}}`, func(p pod) bool {
			return slices.Equal(names(p.Spec.Containers), []string{Container, "a"}) && len(sandbox(p).Env) == 2
		}},
		{"a manifest's names give way", `{metadata: {name: a, generateName: a-, namespace: b}}`, func(p pod) bool {
			return p.Name == PodName("k7q2m9") && p.GenerateName == "" && p.Namespace == ""
		}},
		{"one mount without a list", `{apiVersion: v1, kind: Pod, spec: {volumes: [{name: d, emptyDir: {sizeLimit: 1Gi}}], containers: [{volumeMounts: {name: d, mountPath: /data}}], initContainers: [{name: a, image: x, volumeMounts: {name: d, mountPath: /data}}]}}`, func(p pod) bool {
			has := func(c corev1.Container) bool {
				return slices.ContainsFunc(c.VolumeMounts, func(m corev1.VolumeMount) bool { return m.Name == "d" && m.MountPath == "/data" })
			}
			return has(sandbox(p)) && has(p.Spec.InitContainers[1])
		}},
		{"sidecars come after, as they are there", `{spec: {containers: [{name: z, image: x}, {name: sandbox}, {name: a, image: x}]}}`, func(p pod) bool {
			return slices.Equal(names(p.Spec.Containers), []string{Container, "z", "a"})
		}},
		{"init containers come after the agent's", `{spec: {initContainers: [{name: z, image: x}, {name: a, image: x}]}}`, func(p pod) bool {
			return slices.Equal(names(p.Spec.InitContainers), []string{InitContainer, "z", "a"})
		}},
		{"the agent comes by the sandbox's image", `{spec: {containers: [{imagePullPolicy: Always}]}}`, func(p pod) bool {
			i := p.Spec.InitContainers[0]
			return i.Image == "registry.example/python:3.13" && i.ImagePullPolicy == corev1.PullAlways
		}},
		{"a sidecar says itself what it is held to", `{spec: {containers: [{name: sandbox}, {name: a, image: x, securityContext: {allowPrivilegeEscalation: true, capabilities: {add: [NET_ADMIN]}}}]}}`, func(p pod) bool {
			s := p.Spec.Containers[1].SecurityContext
			return *s.AllowPrivilegeEscalation && len(s.Capabilities.Drop) == 0
		}},
		{"a privileged sidecar has no default beside", `{spec: {containers: [{name: sandbox}, {name: a, image: x, securityContext: {privileged: true}}]}}`, func(p pod) bool {
			s := p.Spec.Containers[1].SecurityContext
			return s.AllowPrivilegeEscalation == nil && s.Capabilities == nil
		}},
		{"a sidecar says itself what it takes of the disk", `{spec: {containers: [{name: sandbox}, {name: a, image: x, resources: {limits: {ephemeral-storage: 5Gi}}}]}}`, func(p pod) bool {
			r := p.Spec.Containers[1].Resources
			return quantity(r.Limits, "ephemeral-storage") == "5Gi" && len(r.Requests) == 0
		}},
		{"a sidecar gets what it asks for of the disk", `{spec: {containers: [{name: sandbox}, {name: a, image: x, resources: {requests: {ephemeral-storage: 5Gi}}}]}}`, func(p pod) bool {
			r := p.Spec.Containers[1].Resources
			return quantity(r.Limits, "ephemeral-storage") == "5Gi" && quantity(r.Requests, "ephemeral-storage") == "5Gi"
		}},
		{"a template's volumes on disk are added to the limit", `{spec: {volumes: [{name: a, emptyDir: {sizeLimit: 1Gi}}, {name: b, emptyDir: {medium: Memory, sizeLimit: 1Gi}}]}}`, func(p pod) bool {
			return quantity(sandbox(p).Resources.Limits, "ephemeral-storage") == "1088Mi"
		}},
		{"unless the template says the limit", `{spec: {volumes: [{name: a, emptyDir: {sizeLimit: 1Gi}}], containers: [{resources: {limits: {ephemeral-storage: 2Gi}}}]}}`, func(p pod) bool {
			return quantity(sandbox(p).Resources.Limits, "ephemeral-storage") == "2Gi" && quantity(sandbox(p).Resources.Requests, "ephemeral-storage") == "2Gi"
		}},
		{"no more is asked for than the limit is", `{spec: {containers: [{resources: {limits: {memory: 16Mi, cpu: 10m}}}]}}`, func(p pod) bool {
			r := sandbox(p).Resources.Requests
			return quantity(r, "memory") == "16Mi" && quantity(r, "cpu") == "10m"
		}},
		{"what the template asks for", `{spec: {containers: [{resources: {requests: {memory: 300Mi}}}]}}`, func(p pod) bool {
			r := sandbox(p).Resources.Requests
			return quantity(r, "memory") == "300Mi" && quantity(r, "cpu") == "25m" && quantity(p.Spec.InitContainers[0].Resources.Requests, "memory") == "300Mi"
		}},
		{"devices are the sandbox's alone", `{spec: {containers: [{resources: {limits: {example.com/gpu: 1}, requests: {example.com/gpu: 1}}}]}}`, func(p pod) bool {
			i := p.Spec.InitContainers[0].Resources
			return len(i.Limits) == 3 && len(i.Requests) == 3 && quantity(sandbox(p).Resources.Limits, "example.com/gpu") == "1"
		}},
		{"all capabilities stay dropped", `{spec: {containers: [{securityContext: {capabilities: {drop: [CHOWN], add: [NET_RAW]}}}]}}`, func(p pod) bool {
			c := sandbox(p).SecurityContext.Capabilities
			return slices.Equal(c.Drop, []corev1.Capability{"ALL"}) && slices.Equal(c.Add, []corev1.Capability{"NET_RAW"})
		}},
		{"what the cluster refuses beside privileged goes", `{spec: {containers: [{securityContext: {privileged: true}}]}}`, func(p pod) bool {
			return sandbox(p).SecurityContext.AllowPrivilegeEscalation == nil
		}},
		{"root by name", `{spec: {securityContext: {runAsUser: 0}}}`, func(p pod) bool { return p.Spec.SecurityContext.RunAsNonRoot == nil }},
		{"root by name in the container", `{spec: {containers: [{securityContext: {runAsUser: 0}}]}}`, func(p pod) bool {
			return !*sandbox(p).SecurityContext.RunAsNonRoot && *p.Spec.SecurityContext.RunAsNonRoot && p.Spec.InitContainers[0].SecurityContext.RunAsNonRoot == nil
		}},
		{"a sidecar that is root by name", `{spec: {containers: [{name: sandbox}, {name: a, image: x, securityContext: {runAsUser: 0}}]}}`, func(p pod) bool {
			return !*p.Spec.Containers[1].SecurityContext.RunAsNonRoot && sandbox(p).SecurityContext.RunAsNonRoot == nil
		}},
		{"a contradiction is the caller's", `{spec: {securityContext: {runAsUser: 0, runAsNonRoot: true}}}`, func(p pod) bool { return *p.Spec.SecurityContext.RunAsNonRoot }},
		{"another user", `{spec: {securityContext: {runAsUser: 1000, runAsGroup: 1001, fsGroup: 1002}}}`, func(p pod) bool {
			s := p.Spec.SecurityContext
			return *s.RunAsUser == 1000 && *s.RunAsGroup == 1001 && *s.FSGroup == 1002 && *s.RunAsNonRoot
		}},
		{"names are asked of whom the template says", `{spec: {dnsPolicy: ClusterFirst}}`, func(p pod) bool { return p.Spec.DNSPolicy == corev1.DNSClusterFirst && p.Spec.DNSConfig == nil }},
		{"with its own search", `{spec: {dnsPolicy: Default, dnsConfig: {searches: [a.example]}}}`, func(p pod) bool {
			return len(p.Spec.DNSConfig.Nameservers) == 0 && p.Spec.DNSConfig.Searches[0] == "a.example"
		}},
		{"name servers of the template", `{spec: {dnsConfig: {nameservers: [192.0.2.1]}}}`, func(p pod) bool {
			return p.Spec.DNSPolicy == corev1.DNSNone && slices.Equal(p.Spec.DNSConfig.Nameservers, []string{"192.0.2.1"})
		}},
		{"a deadline of the cluster's", `{spec: {activeDeadlineSeconds: 86400}}`, func(p pod) bool { return *p.Spec.ActiveDeadlineSeconds == 86400 }},
		{"a mount in another place", `{spec: {volumes: [{name: d, emptyDir: {sizeLimit: 1Gi}}], containers: [{volumeMounts: [{name: d, mountPath: /sandbox/}]}]}}`, func(p pod) bool {
			at := slices.DeleteFunc(slices.Clone(sandbox(p).VolumeMounts), func(m corev1.VolumeMount) bool { return m.MountPath != Workdir })
			return len(at) == 1 && at[0].Name == "d"
		}},
		{"lists that have no key stay whole", `{spec: {tolerations: [{key: a}, {key: a, effect: NoExecute}], topologySpreadConstraints: [{topologyKey: z, maxSkew: 1, whenUnsatisfiable: DoNotSchedule}, {topologyKey: z, maxSkew: 2, whenUnsatisfiable: ScheduleAnyway}]}}`, func(p pod) bool {
			return len(p.Spec.Tolerations) == 2 && len(p.Spec.TopologySpreadConstraints) == 2
		}},
		{"grace for sidecars", `{spec: {terminationGracePeriodSeconds: 5}}`, func(p pod) bool { return *p.Spec.TerminationGracePeriodSeconds == 5 }},
		{"a volume's source is not mixed with another's", `{spec: {volumes: [{name: a, secret: {secretName: s}}]}}`, func(p pod) bool {
			v := p.Spec.Volumes[4]
			return v.Name == "a" && v.Secret != nil && v.EmptyDir == nil
		}},
	} {
		if p := build(t, with(t, c.template)); !c.holds(p) {
			t.Errorf("%s: it does not hold of %s, want c.holds(p) = true", c.name, c.template)
		}
	}
}

func names(all []corev1.Container) (names []string) {
	for _, c := range all {
		names = append(names, c.Name)
	}
	return names
}

// TestAgentMode: gVisor runs no program that its user may not read.
func TestAgentMode(t *testing.T) {
	for _, c := range []struct {
		template, class, agentImage, want string
	}{
		{want: "chmod 0111 agent\n"},
		{class: "gvisor", want: "chmod 0555 agent\n"},
		{template: `{spec: {runtimeClassName: gvisor}}`, want: "chmod 0555 agent\n"},
		{agentImage: "agent:1", want: "install /.llmsandbox"},
		{agentImage: "agent:1", template: `{spec: {runtimeClassName: gvisor}}`, want: "install /.llmsandbox --readable"},
	} {
		r := plain()
		if c.template != "" {
			r = with(t, c.template)
		}
		r.RuntimeClass, r.AgentImage = c.class, c.agentImage
		if got := strings.Join(build(t, r).Spec.InitContainers[0].Command, " "); !strings.HasSuffix(got, c.want) {
			t.Errorf("%+v: %s, want it to end in %q", c, got, c.want)
		}
	}
	r := with(t, `{spec: {runtimeClassName: gvisor}}`)
	r.AgentImage, r.Spec.Layers = "agent:1", []backend.Layer{{Target: "/a"}}
	want := []string{"/agent", "install", AgentDir, "--readable", "--layers"}
	if got := build(t, r).Spec.InitContainers[0].Command; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

func TestRequested(t *testing.T) {
	r := plain()
	r.PullPolicy, r.PullSecrets = corev1.PullNever, []string{"a", "b"}
	r.RuntimeClass, r.ServiceAccount, r.NodeSelector = "gvisor", "sandboxes", map[string]string{"disk": "ssd"}
	p := build(t, r)
	s := p.Spec
	if *s.RuntimeClassName != "gvisor" || s.ServiceAccountName != "sandboxes" || s.NodeSelector["disk"] != "ssd" || len(s.ImagePullSecrets) != 2 {
		t.Errorf("%+v, want RuntimeClassName = \"gvisor\", ServiceAccountName = \"sandboxes\", s.NodeSelector[\"disk\"] = \"ssd\", len(s.ImagePullSecrets) = 2", s)
	}
	if s.Containers[0].ImagePullPolicy != corev1.PullNever || s.InitContainers[0].ImagePullPolicy != corev1.PullNever {
		t.Errorf("pull policies %s and %s, want Never", s.Containers[0].ImagePullPolicy, s.InitContainers[0].ImagePullPolicy)
	}
	s.NodeSelector["disk"] = "changed"
	p.OwnerReferences[0].Name = "changed"
	p.Spec.Containers[0].Args[1] = "changed"
	if r.NodeSelector["disk"] != "ssd" || r.OwnerRef.Name == "changed" || r.Args[0] == "changed" {
		t.Errorf("a change of the pod changes the request: %v, %+v, %q, want it as it was", r.NodeSelector, r.OwnerRef, r.Args)
	}
}

// TestLiterally: the cluster puts no variables into what code could have named.
func TestLiterally(t *testing.T) {
	r := plain()
	r.Args, r.Token = []string{"--seed", "/a=$(HOME)/$$"}, "$(HOME)"
	c := build(t, r).Spec.Containers[0]
	if c.Args[2] != "/a=$$(HOME)/$$$$" || c.Env[0].Value != "$$(HOME)" {
		t.Errorf("%q, %q, want c.Args[2] = \"/a=$$(HOME)/$$$$\", Value = \"$$(HOME)\"", c.Args, c.Env)
	}
}

// TestDeadline: a pod's own deadline can never be made later, so pods have none.
func TestDeadline(t *testing.T) {
	r := plain()
	if r.Spec.Deadline.IsZero() {
		t.Fatal("the request has no deadline: r.Spec.Deadline.IsZero() = true, want false")
	}
	if d := build(t, r).Spec.ActiveDeadlineSeconds; d != nil {
		t.Errorf("the cluster ends the pod after %d s, want nothing of the kind", *d)
	}
}

func TestLimits(t *testing.T) {
	r := plain()
	r.Spec.Limits = backend.Limits{CPUs: 0.0001, Memory: 8 << 20, Disk: 1 << 20}
	p := build(t, r)
	l, q := p.Spec.Containers[0].Resources.Limits, p.Spec.Containers[0].Resources.Requests
	if l.Cpu().String() != "1m" || q.Cpu().String() != "1m" || q.Memory().String() != "8Mi" {
		t.Errorf("%v, %v, want Cpu = \"1m\", Memory = \"8Mi\"", l, q)
	}
	for i, want := range []string{"", "1Mi", "1Mi", "1Mi"} {
		if size := p.Spec.Volumes[i].EmptyDir.SizeLimit; want == "" && size != nil || want != "" && size.String() != want {
			t.Errorf("%s: %v, want %q", p.Spec.Volumes[i].Name, size, want)
		}
	}
	r.Spec.Limits = backend.Limits{}
	p = build(t, r)
	l, q = p.Spec.Containers[0].Resources.Limits, p.Spec.Containers[0].Resources.Requests
	if len(l) != 1 || q.Cpu().String() != "25m" || q.Memory().String() != "32Mi" {
		t.Errorf("no limits: %v, %v, want len(l) = 1, Cpu = \"25m\", Memory = \"32Mi\"", l, q)
	}
	for i, want := range []string{"", "", "", "64Mi"} {
		if size := p.Spec.Volumes[i].EmptyDir.SizeLimit; want == "" && size != nil || want != "" && size.String() != want {
			t.Errorf("no limits: %s: %v, want %q", p.Spec.Volumes[i].Name, size, want)
		}
	}
}

func TestGPUs(t *testing.T) {
	r := plain()
	r.Spec.GPUs = "2"
	p := build(t, r)
	if q := p.Spec.Containers[0].Resources.Limits[resourceGPU]; q.String() != "2" {
		t.Errorf("the sandbox has %s GPUs, want 2", &q)
	}
	if _, ok := p.Spec.InitContainers[0].Resources.Limits[resourceGPU]; ok {
		t.Error("the agent's container has GPUs, want none")
	}
	if k, ok := Controls(p, r.Spec.Limits, shown).Get("devices"); !ok || k.Enforced {
		t.Errorf("the control devices: %+v, %v, want one that is not enforced", k, ok)
	}
	for _, all := range []string{"all", "0,1", "nvidia.com/gpu=0"} {
		r.Spec.GPUs = all
		if _, err := Build(r); !errors.Is(err, backend.ErrUnsupported) || !strings.Contains(err.Error(), "a pod asks for a number") {
			t.Errorf("%s: %v, want ErrUnsupported and why", all, err)
		}
	}
}

func TestImage(t *testing.T) {
	if Image(nil) != "" || Image(with(t, `{spec: {containers: [{name: a, image: x}, {name: b, image: x}]}}`).Template) != "" {
		t.Error("a template without the sandbox's container has an image, want none")
	}
	r := with(t, `{spec: {containers: [{name: a, image: x}, {name: sandbox, image: z}]}}`)
	r.Image = ""
	if Image(r.Template) != "z" || build(t, r).Spec.Containers[0].Image != "z" {
		t.Errorf("Image is %q, the pod's %q, want \"z\" for both", Image(r.Template), build(t, r).Spec.Containers[0].Image)
	}
}

func TestNewUID(t *testing.T) {
	seen := map[int64]bool{}
	for range 1000 {
		uid := NewUID()
		if uid < firstUID || uid > lastUID || seen[uid] {
			t.Fatalf("%d, want uid >= %d, uid <= %d, seen[uid] = false", uid, firstUID, lastUID)
		}
		seen[uid] = true
	}
}

func TestNamespace(t *testing.T) {
	of := func(namespace string) *corev1.PodTemplateSpec {
		return &corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Namespace: namespace}}
	}
	for _, c := range []struct {
		callers  string
		template *corev1.PodTemplateSpec
		want     string
		fails    bool
	}{
		{callers: "", template: nil, want: ""},
		{callers: "a", template: nil, want: "a"},
		{callers: "a", template: of(""), want: "a"},
		{callers: "", template: of("b"), want: "b"},
		{callers: "b", template: of("b"), want: "b"},
		{callers: "a", template: of("b"), fails: true},
	} {
		got, err := Namespace(c.callers, c.template)
		if got != c.want || errors.Is(err, backend.ErrInvalid) != c.fails {
			t.Errorf("%+v: %q, %v, want %q, ErrInvalid: %v", c, got, err, c.want, c.fails)
		}
	}
}
