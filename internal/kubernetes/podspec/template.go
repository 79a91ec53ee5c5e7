package podspec

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path"
	"reflect"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/strategicpatch"
	kjson "sigs.k8s.io/json"
	kyaml "sigs.k8s.io/yaml"

	"github.com/llmsandbox/llmsandbox/backend"
	"github.com/llmsandbox/llmsandbox/internal/agenthost"
)

// maxTemplate bounds the text of a template, in bytes: a cluster takes no larger objects.
const maxTemplate = 1 << 20

// maxFaults bounds how many unknown fields an error names.
const maxFaults = 10

// ParseTemplate reads a pod template from YAML or JSON: the object that has the fields
// metadata and spec of a pod, or a whole Pod or PodTemplate of v1. Fields that are not
// known, or given twice, are errors that name them, as is a second document. It only
// reads: Validate reports whether the template can be used. Errors wrap backend.ErrInvalid.
func ParseTemplate(text []byte) (*corev1.PodTemplateSpec, error) {
	t, err := parseTemplate(text)
	if err != nil {
		return nil, fmt.Errorf("pod template: %w: %w", backend.ErrInvalid, err)
	}
	return t, nil
}

func parseTemplate(text []byte) (*corev1.PodTemplateSpec, error) {
	if len(text) > maxTemplate {
		return nil, fmt.Errorf("it has %d bytes, more than 1 MiB", len(text))
	}
	if err := oneDocument(text); err != nil {
		return nil, err
	}
	// Names that are given twice are errors here already.
	j, err := kyaml.YAMLToJSONStrict(text)
	if err != nil {
		return nil, err
	}
	if j[0] != '{' {
		return nil, errors.New("it is no object: give one with metadata and spec, or a Pod")
	}
	if j, err = listMounts(j); err != nil {
		return nil, err
	}
	var kind metav1.TypeMeta
	if err := kjson.UnmarshalCaseSensitivePreserveInts(j, &kind); err != nil {
		return nil, err
	}
	switch {
	case kind.Kind == "" && kind.APIVersion == "":
		var t corev1.PodTemplateSpec
		if err := strictly(j, &t); err != nil {
			return nil, err
		}
		return &t, nil
	case kind.APIVersion != "v1" || kind.Kind != "Pod" && kind.Kind != "PodTemplate":
		return nil, fmt.Errorf("apiVersion %q and kind %q: give a Pod or PodTemplate of v1, or leave both out; of a Deployment or Job, take what is below spec.template", kind.APIVersion, kind.Kind)
	case kind.Kind == "PodTemplate":
		var p corev1.PodTemplate
		if err := strictly(j, &p); err != nil {
			return nil, err
		}
		return &p.Template, nil
	}
	var p corev1.Pod
	if err := strictly(j, &p); err != nil {
		return nil, err
	}
	if !reflect.DeepEqual(p.Status, corev1.PodStatus{}) {
		return nil, errors.New("status: it is the cluster's to say: leave it out")
	}
	return &corev1.PodTemplateSpec{ObjectMeta: p.ObjectMeta, Spec: p.Spec}, nil
}

// oneDocument fails where a text has more than one document, of which only the first
// would be read.
func oneDocument(text []byte) error {
	d := yaml.NewDecoder(bytes.NewReader(text))
	for n := 0; ; n++ {
		var doc yaml.Node
		err := d.Decode(&doc)
		switch {
		case errors.Is(err, io.EOF) && n == 0:
			return errors.New("it is empty")
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return err
		case n > 0 && !empty(doc):
			return errors.New("it has more than one document: leave one")
		}
	}
}

// empty reports whether there is nothing after a document's mark.
func empty(doc yaml.Node) bool {
	return len(doc.Content) == 0 || len(doc.Content) == 1 && doc.Content[0].Tag == "!!null"
}

// listMounts makes a list of each volumeMounts that is one mapping. No cluster takes that, but llm-sandbox's
// documentation has it, and so have the manifests of its users.
func listMounts(j []byte) ([]byte, error) {
	var object any
	if err := kjson.UnmarshalCaseSensitivePreserveInts(j, &object); err != nil {
		return nil, err
	}
	var walk func(any)
	walk = func(v any) {
		switch v := v.(type) {
		case map[string]any:
			if one, ok := v["volumeMounts"].(map[string]any); ok {
				v["volumeMounts"] = []any{one}
			}
			for _, value := range v {
				walk(value)
			}
		case []any:
			for _, value := range v {
				walk(value)
			}
		}
	}
	walk(object)
	return json.Marshal(object)
}

// strictly decodes JSON and fails on what the type does not know.
func strictly(j []byte, into any) error {
	faults, err := kjson.UnmarshalStrict(j, into)
	if err != nil {
		return err
	}
	if len(faults) == 0 {
		return nil
	}
	var words []string
	for _, f := range faults[:min(len(faults), maxFaults)] {
		words = append(words, f.Error())
	}
	if more := len(faults) - len(words); more > 0 {
		words = append(words, fmt.Sprintf("and %d more", more))
	}
	return errors.New(strings.Join(words, "; "))
}

// merge lays a template over a pod.
func merge(under corev1.PodTemplateSpec, over *corev1.PodTemplateSpec) (corev1.PodTemplateSpec, error) {
	var out corev1.PodTemplateSpec
	original, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&under)
	if err != nil {
		return out, fmt.Errorf("pod: %w", err)
	}
	patch, err := patchOf(over)
	if err != nil {
		return out, err
	}
	merged, err := strategicpatch.StrategicMergeMapPatch(original, patch, out)
	if err != nil {
		return out, fmt.Errorf("pod template: %w: lay it over the sandbox's pod: %w", backend.ErrInvalid, err)
	}
	// By JSON, which takes each number as what the field is.
	b, err := json.Marshal(merged)
	if err != nil {
		return out, fmt.Errorf("pod: %w", err)
	}
	if err := json.Unmarshal(b, &out); err != nil {
		return out, fmt.Errorf("pod template: %w: %w", backend.ErrInvalid, err)
	}
	return out, nil
}

// patchOf is what a template says, and nothing of what it leaves out. Whole manifests of pods can be templates: the
// names in them give way to the sandbox's, and so does the input of its container, whose program is the agent.
func patchOf(t *corev1.PodTemplateSpec) (map[string]any, error) {
	t = t.DeepCopy()
	t.Name, t.GenerateName, t.Namespace = "", "", ""
	if i := ours(t.Spec.Containers); i >= 0 {
		c := &t.Spec.Containers[i]
		c.Name, c.Stdin, c.StdinOnce, c.TTY = Container, false, false, false
		// The same place written in another way would be mounted twice.
		for j := range c.VolumeMounts {
			c.VolumeMounts[j].MountPath = path.Clean(c.VolumeMounts[j].MountPath)
		}
	}
	patch, err := runtime.DefaultUnstructuredConverter.ToUnstructured(t)
	if err != nil {
		return nil, fmt.Errorf("pod template: %w: %w", backend.ErrInvalid, err)
	}
	if field := tidy(patch); field != "" {
		return nil, fmt.Errorf("pod template: %w: %s: names that begin with $ say how to merge, which is decided already: leave it out", backend.ErrInvalid, field)
	}
	return patch, nil
}

// tidy removes what a typed object says of fields that were never set: null would delete
// what lies below. It returns the first key that would be taken for an instruction.
func tidy(v any) (directive string) {
	switch v := v.(type) {
	case map[string]any:
		for key, value := range sorted(v) {
			if strings.HasPrefix(key, "$") {
				return key
			}
			if value == nil {
				delete(v, key)
				continue
			}
			if d := tidy(value); d != "" {
				return key + "." + d
			}
		}
	case []any:
		for _, value := range v {
			if d := tidy(value); d != "" {
				return d
			}
		}
	}
	return ""
}

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
	if agenthost.AsRoot(r.Spec) {
		keepRoot(sandbox.SecurityContext.Capabilities)
	}
	addDisk(&sandbox.Resources, over)
	addRequests(&sandbox.Resources, rootBytes(r.Spec))
	agent := &s.InitContainers[0]
	agent.Resources = sameAs(sandbox.Resources)
	if r.AgentImage == "" {
		agent.Image, agent.ImagePullPolicy = sandbox.Image, sandbox.ImagePullPolicy
	}
	_, limited := sandbox.Resources.Limits[corev1.ResourceEphemeralStorage]
	for i := range s.Containers[1:] {
		hardenSidecar(&s.Containers[1+i], limited)
	}
	for i := range s.InitContainers[1:] {
		hardenSidecar(&s.InitContainers[1+i], limited)
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
	switch i := slices.Index(own, v.Name); {
	case i >= 0:
		return i
	case strings.HasPrefix(v.Name, volumeClaims):
		return len(own)
	}
	return len(own) + 1
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
// may need a root that it can write to. Where the sandbox may take any amount of disk, a sidecar's limit would be everybody's.
func hardenSidecar(c *corev1.Container, limited bool) {
	c.SecurityContext = cmp.Or(c.SecurityContext, &corev1.SecurityContext{})
	s := c.SecurityContext
	if s.Capabilities == nil && !isTrue(s.Privileged) {
		s.Capabilities = &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}}
	}
	if s.AllowPrivilegeEscalation == nil && !isTrue(s.Privileged) && (s.Capabilities == nil || len(s.Capabilities.Add) == 0) {
		s.AllowPrivilegeEscalation = new(false)
	}
	if limited {
		shareDisk(&c.Resources)
	}
}

func isTrue(b *bool) bool { return b != nil && *b }
