package podspec

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"

	"github.com/llmsandbox/llmsandbox/backend"
	"github.com/llmsandbox/llmsandbox/internal/environ"
)

// FuzzBuild lays whatever can be read as a template over a sandbox's pod. The template
// stays as it was, the pod is the same every time and shares nothing with it, and the
// agent is held by nothing else than it is by default.
func FuzzBuild(f *testing.F) {
	for _, s := range templates {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		parsed, err := ParseTemplate(text)
		if err != nil {
			return
		}
		checkBuild(t, parsed, false)
		checkBuild(t, parsed, true)
	})
}

// checkBuild checks what is true of every pod.
func checkBuild(t *testing.T, template *corev1.PodTemplateSpec, root bool) {
	t.Helper()
	before := template.DeepCopy()
	r := plain()
	r.Spec.Layers = []backend.Layer{{Target: "/opt/libraries"}}
	r.Template = template
	if root {
		r.Spec.User, r.Spec.WritableRoot, r.Args = "root", true, append(r.Args, "--users")
	}
	if Image(template) != "" {
		r.Image = ""
	}
	p, err := Build(r)
	if !apiequality.Semantic.DeepEqual(before, template) {
		t.Fatalf("the template was changed, want apiequality.Semantic.DeepEqual(before, template) = true:\n%s", cmp.Diff(text(t, before), text(t, template)))
	}
	if err != nil {
		return
	}
	again := build(t, r)
	if a, b := text(t, p), text(t, again); a != b {
		t.Fatalf("another pod the second time, want a = %v:\n%s", b, cmp.Diff(a, b))
	}
	checkIntact(t, p, r)
	Controls(p, r.Spec.Limits, shown)
	spoil(p)
	if !apiequality.Semantic.DeepEqual(before, template) {
		t.Fatal("the pod shares with the template: apiequality.Semantic.DeepEqual(before, template) = false, want true")
	}
}

// checkIntact checks what no template may change.
func checkIntact(t *testing.T, p *corev1.Pod, r Request) {
	t.Helper()
	c, i := p.Spec.Containers[0], p.Spec.InitContainers[0]
	if c.Name != Container || i.Name != InitContainer || p.Name != PodName(r.Spec.ID) || p.Namespace != "" || p.Spec.RestartPolicy != corev1.RestartPolicyNever {
		t.Errorf("names: %s, want Name = Container, Name = InitContainer, p.Name = PodName(r.Spec.ID), Namespace empty, RestartPolicy = RestartPolicyNever", text(t, p))
	}
	if !slices.Equal(c.Command, []string{AgentFile}) || len(c.Args) != 1+len(r.Args) || i.Command[0] != "/bin/sh" || c.Stdin || !i.Stdin || c.TerminationMessagePath != closedFile {
		t.Errorf("what is run: %s, want Command %q, len(c.Args) = %v, i.Command[0] = \"/bin/sh\", Stdin false, Stdin true, TerminationMessagePath = %v", text(t, p), []string{AgentFile}, 1+len(r.Args), closedFile)
	}
	if tokens := slices.DeleteFunc(slices.Clone(c.Env), func(e corev1.EnvVar) bool { return !strings.HasPrefix(e.Name, environ.Own) }); len(tokens) != 1 || tokens[0].Value != r.Token {
		t.Errorf("the agent's variables: %v, want len(tokens) = 1, Value = %v", tokens, r.Token)
	}
	for key, want := range map[string]string{LabelManagedBy: ManagedBy, LabelName: NameSandbox, LabelRole: RoleSandbox, LabelSandbox: r.Spec.ID, LabelOwner: r.Owner, LabelNetwork: NetworkIsolated} {
		if p.Labels[key] != want {
			t.Errorf("label %s is %q, want %q", key, p.Labels[key], want)
		}
	}
	if len(p.OwnerReferences) != 1 || p.Annotations[AnnotationInfo] != r.Annotations[AnnotationInfo] || p.Annotations[AnnotationUser] == "" {
		t.Errorf("what the pod is found and ended by: %s, want len(p.OwnerReferences) = 1, p.Annotations[AnnotationInfo] = r.Annotations[AnnotationInfo], p.Annotations[AnnotationUser] not empty", text(t, p))
	}
	if c.SecurityContext.Capabilities.Drop[0] != "ALL" || len(c.SecurityContext.Capabilities.Drop) != 1 {
		t.Errorf("capabilities: %s, want c.SecurityContext.Capabilities.Drop[0] = \"ALL\", len(c.SecurityContext.Capabilities.Drop) = 1", text(t, p))
	}
	if v := viewOf(p, Container); r.Spec.User != "" && (!v.root() || !v.writableRoot() || !slices.Contains(c.SecurityContext.Capabilities.Add, "SETPCAP")) {
		t.Errorf("root, who was asked for, is not: %s", text(t, p))
	}
	mounted := map[string]int{}
	for _, x := range slices.Concat(p.Spec.Containers, p.Spec.InitContainers) {
		for _, m := range x.VolumeMounts {
			if m.Name != VolumeAgent && m.Name != volumeLayers {
				continue
			}
			mounted[m.Name]++
			if x.Name == Container && !m.ReadOnly || x.Name != Container && x.Name != InitContainer || m.SubPathExpr != "" {
				t.Errorf("the agent or a layer is mounted into %s: %+v, want Name != Container or ReadOnly true, Name = Container or Name = InitContainer, SubPathExpr empty", x.Name, m)
			}
		}
	}
	agent := p.Spec.Volumes[0]
	if mounted[VolumeAgent] != 2 || mounted[volumeLayers] != 3 || agent.Name != VolumeAgent || agent.EmptyDir == nil || agent.EmptyDir.Medium != corev1.StorageMediumMemory {
		t.Errorf("the volumes of the agent and the layers: %s, want mounted[VolumeAgent] = 2, mounted[volumeLayers] = 3, Name = VolumeAgent, EmptyDir not nil, Medium = StorageMediumMemory", text(t, p))
	}
}

// spoil changes what a pod could share with the template.
func spoil(p *corev1.Pod) {
	for _, m := range []map[string]string{p.Labels, p.Annotations, p.Spec.NodeSelector} {
		for k := range m {
			m[k] = "spoiled"
		}
	}
	for i := range p.Spec.Tolerations {
		p.Spec.Tolerations[i].Key = "spoiled"
	}
	for i := range p.Spec.Volumes {
		p.Spec.Volumes[i] = corev1.Volume{}
	}
	if d := p.Spec.DNSConfig; d != nil {
		for i := range d.Nameservers {
			d.Nameservers[i] = "spoiled"
		}
		for i := range d.Searches {
			d.Searches[i] = "spoiled"
		}
	}
	for _, all := range [][]corev1.Container{p.Spec.Containers, p.Spec.InitContainers} {
		for i := range all {
			for name := range all[i].Resources.Limits {
				all[i].Resources.Limits[name] = bytesOf(1)
			}
			for j := range all[i].Env {
				all[i].Env[j].Value = "spoiled"
			}
			all[i] = corev1.Container{}
		}
	}
}

func text(t *testing.T, v any) string {
	t.Helper()
	b, err := json.MarshalIndent(v, "", " ")
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// templates are seeds that reach most of what is merged.
var templates = []string{
	hardSidecars,
	`{apiVersion: v1, kind: Pod, metadata: {name: a, namespace: b}, spec: {containers: [{name: c, image: d, tty: true, volumeMounts: {name: e, mountPath: /tmp}}], volumes: [{name: e, emptyDir: {sizeLimit: 5Gi}}]}}`,
	`{metadata: {labels: {a: b, $patch: delete}, annotations: {c: d}}}`,
	`{spec: {containers: null, volumes: null, initContainers: []}}`,
	`{spec: {dnsPolicy: Default, dnsConfig: {nameservers: [192.0.2.1], searches: [a], options: [{name: a, value: b}]}}}`,
	`{spec: {tolerations: [{key: a}], nodeSelector: {a: b}, runtimeClassName: a, hostUsers: false}}`,
	`{spec: {securityContext: {runAsUser: 0, sysctls: [{name: a, value: b}]}, hostNetwork: true, hostPID: true}}`,
	`{spec: {containers: [{name: sandbox, image: x, env: [{name: A, valueFrom: {secretKeyRef: {name: a, key: b}}}], envFrom: [{secretRef: {name: a}}]}]}}`,
	`{spec: {containers: [{securityContext: {privileged: true, capabilities: {add: [SYS_ADMIN], drop: [CHOWN]}}, volumeMounts: [{name: a, mountPath: /tmp/, subPathExpr: $(A)}]}]}}`,
	`{spec: {containers: [{volumeMounts: [{name: a, mountPath: //opt/libraries/.}]}]}}`,
	`{spec: {volumes: [{name: a, emptyDir: {sizeLimit: 1Gi}}, {name: b, csi: {driver: d, volumeAttributes: {$retainKeys: a}}}]}}`,
	`{spec: {volumes: [{name: llmsandbox-agent, hostPath: {path: /}}]}}`,
	`{spec: {containers: [{resources: {limits: {memory: 1, cpu: 1m, ephemeral-storage: 1Gi, a/b: 2}, requests: {memory: 1Gi}}}]}}`,
	`{spec: {containers: [{name: sandbox}, {name: a, image: x, volumeMounts: [{name: llmsandbox-workdir, mountPath: /w}]}], imagePullSecrets: [{name: a}, {name: a}]}}`,
}
