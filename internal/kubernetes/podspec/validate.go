package podspec

import (
	"fmt"
	"path"
	"reflect"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/llmsandbox/llmsandbox/backend"
	"github.com/llmsandbox/llmsandbox/internal/environ"
)

// Validate reports whether a template can be laid over a sandbox's pod; nil can. The error
// names every field that cannot and why, and wraps backend.ErrInvalid.
func Validate(t *corev1.PodTemplateSpec) error {
	if t == nil {
		return nil
	}
	var f faults
	f.metadata(t.ObjectMeta)
	f.pod(t.Spec)
	f.volumes(t.Spec.Volumes)
	f.containers(t.Spec)
	if len(f) == 0 {
		if _, err := patchOf(t); err != nil {
			return err
		}
	}
	return f.err()
}

// faults are what is wrong with a template, field by field.
type faults []string

func (f *faults) add(field, format string, args ...any) {
	*f = append(*f, field+": "+fmt.Sprintf(format, args...))
}

func (f faults) err() error {
	if len(f) == 0 {
		return nil
	}
	return fmt.Errorf("pod template: %w: %s", backend.ErrInvalid, strings.Join(f, "; "))
}

// metadata may have labels and annotations, and names, of which only Namespace is used; the rest would not be the
// template's.
func (f *faults) metadata(m metav1.ObjectMeta) {
	for key, value := range sorted(m.Labels) {
		field := "metadata.labels[" + key + "]"
		f.key(field, key)
		if key == LabelManagedBy || key == LabelName {
			f.add(field, "the sandbox is found by it: leave it out")
		}
		for _, why := range validation.IsValidLabelValue(value) {
			f.add(field, "%s", why)
		}
	}
	for key := range sorted(m.Annotations) {
		f.key("metadata.annotations["+key+"]", key)
	}
	for _, c := range []struct {
		set        bool
		field, why string
	}{
		{len(m.OwnerReferences) > 0, "ownerReferences", "the cluster keeps a pod for as long as one of its owners is there, and would no longer remove one that was abandoned: leave them out"},
		{len(m.Finalizers) > 0, "finalizers", "the pod would outlive its sandbox: leave them out"},
	} {
		if c.set {
			f.add("metadata."+c.field, "%s", c.why)
		}
	}
	m.Labels, m.Annotations, m.OwnerReferences, m.Finalizers = nil, nil, nil, nil
	m.Name, m.GenerateName, m.Namespace = "", "", ""
	if !reflect.DeepEqual(m, metav1.ObjectMeta{}) {
		f.add("metadata", "it has what only the cluster fills in: leave labels and annotations, and remove the rest")
	}
}

// key checks the name of a label or annotation.
func (f *faults) key(field, key string) {
	if strings.HasPrefix(key, domain) {
		f.add(field, "names below %s are llmsandbox's own: choose another", domain)
	}
	for _, why := range validation.IsQualifiedName(strings.ToLower(key)) {
		f.add(field, "%s", why)
	}
}

// windows is what the node selector and the pod say of Windows.
const (
	labelOS = "kubernetes.io/os"
	windows = "windows"
)

// pod checks what is said of the pod as a whole.
func (f *faults) pod(s corev1.PodSpec) {
	if s.RestartPolicy != "" && s.RestartPolicy != corev1.RestartPolicyNever {
		f.add("spec.restartPolicy", "a sandbox that has ended stays so: %s is not possible, leave it out", s.RestartPolicy)
	}
	if len(s.EphemeralContainers) > 0 {
		f.add("spec.ephemeralContainers", "they can only be added to a pod that runs: leave them out")
	}
	if s.DeprecatedServiceAccount != "" {
		f.add("spec.serviceAccount", "it is an old name: use serviceAccountName")
	}
	if s.OS != nil && s.OS.Name == windows || s.NodeSelector[labelOS] == windows {
		f.add("spec.os", "sandboxes need Linux")
	}
	if s.SecurityContext != nil && s.SecurityContext.WindowsOptions != nil {
		f.add("spec.securityContext.windowsOptions", "sandboxes need Linux")
	}
}

// volumes checks the template's volumes, which are added to the sandbox's own.
func (f *faults) volumes(all []corev1.Volume) {
	for i, v := range all {
		field := fmt.Sprintf("spec.volumes[%d]", i)
		if strings.HasPrefix(v.Name, volumePrefix) {
			f.add(field+".name", "%s: names that begin with %s are llmsandbox's own: choose another", v.Name, volumePrefix)
		}
		if e := v.EmptyDir; e != nil && onDisk(e) && e.SizeLimit == nil {
			f.add(field+".emptyDir", "%s: it has no sizeLimit: say how much of the node's disk it may take", v.Name)
		}
	}
}

// onDisk reports whether an emptyDir counts as the node's disk, and not as memory.
func onDisk(e *corev1.EmptyDirVolumeSource) bool {
	return e.Medium != corev1.StorageMediumMemory && !strings.HasPrefix(string(e.Medium), string(corev1.StorageMediumHugePages))
}

// ours is the index of the template's container that is laid over the sandbox's, and -1
// where all are sidecars: the only one, or that named "sandbox", or else the first without a name.
func ours(all []corev1.Container) int {
	if len(all) == 1 {
		return 0
	}
	for _, name := range []string{Container, ""} {
		if i := slices.IndexFunc(all, func(c corev1.Container) bool { return c.Name == name }); i >= 0 {
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
