package podspec

import (
	"cmp"
	"fmt"
	"maps"
	"path"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/llmsandbox/llmsandbox/backend"
	"github.com/llmsandbox/llmsandbox/internal/agenthost"
)

// Build returns the pod of a sandbox, without a namespace. Nothing of the request is
// changed or shared with the pod. An error wraps backend.ErrInvalid, or backend.ErrUnsupported
// for GPUs, users and the like that no pod can ask for.
func Build(r Request) (*corev1.Pod, error) {
	if err := Validate(r.Template); err != nil {
		return nil, err
	}
	if err := checkGPUs(r.Spec.GPUs); err != nil {
		return nil, err
	}
	if err := checkRoot(r.Spec); err != nil {
		return nil, err
	}
	over := cmp.Or(r.Template.DeepCopy(), &corev1.PodTemplateSpec{})
	if err := check(r, over); err != nil {
		return nil, err
	}
	if c := over.Spec.RuntimeClassName; c != nil {
		r.RuntimeClass = *c // the same, if it is said twice
	}
	under := base(r)
	addVolumes(&under.Spec, r.Spec.Volumes)
	limits := limitResources(r)
	under.Spec.Containers[0].Resources.Limits = limits
	merged, err := merge(under, over)
	if err != nil {
		return nil, err
	}
	settle(&merged, over, r)
	if err := checkAsked(r.Spec, &merged); err != nil {
		return nil, err
	}
	if err := checkLimits(r.Spec.Limits, limits, merged.Spec.Containers[0].Resources.Limits); err != nil {
		return nil, err
	}
	pod := &corev1.Pod{ObjectMeta: merged.ObjectMeta, Spec: merged.Spec}
	pod.Name = PodName(r.Spec.ID)
	if r.OwnerRef != nil {
		pod.OwnerReferences = []metav1.OwnerReference{*r.OwnerRef.DeepCopy()}
	}
	return pod, nil
}

// check looks at what a request says, and what it and its template both say.
func check(r Request, over *corev1.PodTemplateSpec) error {
	var own corev1.Container
	if i := ours(over.Spec.Containers); i >= 0 {
		own = over.Spec.Containers[i]
	}
	invalid := func(format string, args ...any) error {
		return fmt.Errorf("%w: "+format, append([]any{backend.ErrInvalid}, args...)...)
	}
	if why := validation.IsDNS1123Label(r.Spec.ID); len(why) > 0 {
		return invalid("sandbox id %q: %s", r.Spec.ID, why[0])
	}
	if why := validation.IsValidLabelValue(r.Owner); len(why) > 0 || r.Owner == "" {
		return invalid("owner %q: it is no value of a label", r.Owner)
	}
	if r.Token == "" {
		return invalid("a sandbox without a token would let everybody in")
	}
	if r.UID < 0 {
		return invalid("user %d: it must be above 0, or 0 for the image's own", r.UID)
	}
	if r.Image == "" && own.Image == "" {
		return invalid("neither the sandbox nor the pod template names an image")
	}
	for _, l := range r.Spec.Layers {
		at := path.Clean(l.Target)
		if !path.IsAbs(l.Target) || at == "/" || inAgentDir(at) {
			return invalid("layer at %q: choose another directory", l.Target)
		}
		for _, m := range own.VolumeMounts {
			if path.Clean(m.MountPath) == at {
				return invalid("the pod template mounts %s at %s, where the sandbox has libraries: choose another directory", m.Name, at)
			}
		}
	}
	if err := checkVolumes(r.Spec, own); err != nil {
		return err
	}
	return saidTwice(r, over, own)
}

// saidTwice fails where the request and the template want different things.
func saidTwice(r Request, over *corev1.PodTemplateSpec, own corev1.Container) error {
	type said struct{ what, one, other string }
	runtimeClass := ""
	if c := over.Spec.RuntimeClassName; c != nil {
		runtimeClass = *c
	}
	all := []said{
		{"image", r.Image, own.Image},
		{"pull policy", string(r.PullPolicy), string(own.ImagePullPolicy)},
		{"runtime class", r.RuntimeClass, runtimeClass},
		{"service account", r.ServiceAccount, over.Spec.ServiceAccountName},
	}
	if q, ok := own.Resources.Limits[resourceGPU]; ok {
		all = append(all, said{"number of GPUs", r.Spec.GPUs, q.String()})
	}
	for key, value := range sorted(r.NodeSelector) {
		all = append(all, said{"node selector " + key, value, over.Spec.NodeSelector[key]})
	}
	for _, s := range all {
		if s.one != "" && s.other != "" && s.one != s.other {
			return fmt.Errorf("%w: the %s is given as %s and, in the pod template, as %s: leave one out", backend.ErrInvalid, s.what, s.one, s.other)
		}
	}
	return nil
}

// Image is the image that a template names for the sandbox's container; "" for none.
func Image(t *corev1.PodTemplateSpec) string {
	if t == nil {
		return ""
	}
	if i := ours(t.Spec.Containers); i >= 0 {
		return strings.TrimSpace(t.Spec.Containers[i].Image)
	}
	return ""
}

// Namespace is the namespace that the caller names, or else the template; "" for neither. It fails with
// backend.ErrInvalid where they name different ones.
func Namespace(callers string, t *corev1.PodTemplateSpec) (string, error) {
	switch {
	case t == nil || t.Namespace == "" || t.Namespace == callers:
		return callers, nil
	case callers != "":
		return "", fmt.Errorf("%w: the namespace is given as %s and, in the pod template, as %s: leave one out", backend.ErrInvalid, callers, t.Namespace)
	}
	return t.Namespace, nil
}

// base is the safe pod before any change.
func base(r Request) corev1.PodTemplateSpec {
	t := corev1.PodTemplateSpec{
		ObjectMeta: metav1.ObjectMeta{
			Labels: map[string]string{
				LabelManagedBy: ManagedBy, LabelName: NameSandbox, LabelRole: RoleSandbox,
				LabelSandbox: r.Spec.ID, LabelOwner: r.Owner, LabelNetwork: NetworkIsolated,
			},
			Annotations: map[string]string{annotationContainer: Container},
		},
		Spec: corev1.PodSpec{
			RestartPolicy:                corev1.RestartPolicyNever,
			InitContainers:               []corev1.Container{initContainer(r)},
			Containers:                   []corev1.Container{sandboxContainer(r)},
			Volumes:                      volumes(r),
			SecurityContext:              podSecurity(r),
			Hostname:                     "sandbox",
			AutomountServiceAccountToken: new(false),
			EnableServiceLinks:           new(false),
			ShareProcessNamespace:        new(false),
			// The agent heeds no signal, so a grace period would be waited for in vain.
			TerminationGracePeriodSeconds: new(int64(0)),
			// The pod asks no name server: what may be looked up, the client looks up.
			DNSPolicy:          corev1.DNSNone,
			DNSConfig:          &corev1.PodDNSConfig{Nameservers: []string{"127.0.0.1"}},
			NodeSelector:       maps.Clone(r.NodeSelector),
			ServiceAccountName: r.ServiceAccount,
		},
	}
	maps.Copy(t.Annotations, r.Annotations)
	if r.UID > 0 && OwnsFiles(r.Spec.Volumes) < 0 {
		t.Annotations[AnnotationUser] = strconv.FormatInt(r.UID, 10)
	}
	if r.RuntimeClass != "" {
		t.Spec.RuntimeClassName = new(r.RuntimeClass)
	}
	for _, name := range r.PullSecrets {
		t.Spec.ImagePullSecrets = append(t.Spec.ImagePullSecrets, corev1.LocalObjectReference{Name: name})
	}
	return t
}

// podSecurity holds for every container of the pod that says nothing else. There is an
// fsGroup only where there are claims: the other volumes may be written by everybody as it
// is, and it makes their directories set-gid.
func podSecurity(r Request) *corev1.PodSecurityContext {
	s := &corev1.PodSecurityContext{
		RunAsNonRoot:   new(true),
		SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault},
	}
	if r.UID > 0 {
		s.RunAsUser, s.RunAsGroup = new(r.UID), new(r.UID)
	}
	if r.Spec.User != "" && !agenthost.AsRoot(r.Spec) {
		uid, gid, _ := idsOf(r.Spec.User) // checked
		s.RunAsUser, s.RunAsGroup = new(uid), new(gid)
	}
	return s
}

func sandboxContainer(r Request) corev1.Container {
	c := corev1.Container{
		Name: Container, Image: r.Image, ImagePullPolicy: r.PullPolicy,
		Command:                []string{AgentFile},
		Args:                   append([]string{"serve"}, literally(r.Args)...),
		Env:                    []corev1.EnvVar{{Name: EnvToken, Value: literal(r.Token)}},
		SecurityContext:        containerSecurity(),
		TerminationMessagePath: closedFile,
		VolumeMounts: []corev1.VolumeMount{
			{Name: VolumeAgent, MountPath: AgentDir, ReadOnly: true},
			{Name: VolumeWorkdir, MountPath: WorkdirOf(r.Spec)},
			{Name: VolumeTemp, MountPath: TempDir},
			{Name: volumeShm, MountPath: shmDir},
		},
	}
	addRoot(c.SecurityContext, r.Spec)
	if len(r.Spec.Layers) > 0 {
		c.VolumeMounts = append(c.VolumeMounts, corev1.VolumeMount{Name: volumeLayers, MountPath: LayerDir, ReadOnly: true})
	}
	for i, l := range r.Spec.Layers {
		if !l.Writable { // the agent links the files of the others to their target
			c.VolumeMounts = append(c.VolumeMounts, corev1.VolumeMount{
				Name: volumeLayers, SubPath: strconv.Itoa(i), MountPath: path.Clean(l.Target), ReadOnly: true,
			})
		}
	}
	return c
}

func containerSecurity() *corev1.SecurityContext {
	return &corev1.SecurityContext{
		Privileged:               new(false),
		AllowPrivilegeEscalation: new(false),
		ReadOnlyRootFilesystem:   new(true),
		Capabilities:             &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}},
	}
}

// literal keeps the cluster from putting variables into a text: "$$" is "$".
func literal(s string) string { return strings.ReplaceAll(s, "$", "$$") }

func literally(args []string) []string {
	out := make([]string, len(args))
	for i, a := range args {
		out[i] = literal(a)
	}
	return out
}

// Policies say what is known of how the cluster's network plugin takes NetworkPolicies.
type Policies struct {
	Enforced bool   // it is known to enforce them
	Seen     string // what that is known by, or that it does not; empty: not looked at yet
}

func (v view) network(p Policies) backend.Control {
	detail := "nothing in and nothing out; a network that is asked for goes through a proxy of the process that opens the sandbox"
	if others := v.others(); len(others) > 0 {
		detail += "; the loopback is shared with " + strings.Join(others, ", ")
	}
	switch {
	case v.pod.Labels[LabelNetwork] != NetworkIsolated:
		return backend.Control{Name: "network", Why: "the pod has no label " + LabelNetwork + ", by which the NetworkPolicy selects it", Fix: "leave the label as it was"}
	case !p.Enforced && p.Seen != "":
		return backend.Control{Name: "network", By: "NetworkPolicy",
			Why: "this cluster's network plugin does not enforce policies, " + p.Seen,
			Fix: "install one that does, and let `llmsandbox doctor --backend kubernetes` look again"}
	case !p.Enforced:
		return backend.Control{Name: "network", By: "NetworkPolicy",
			Why: "whether this cluster's network plugin enforces policies is not known",
			Fix: "`llmsandbox doctor --backend kubernetes` finds out, and keeps it for those who open sandboxes"}
	}
	if p.Seen != "" {
		detail += "; " + p.Seen
	}
	return on("network", "NetworkPolicy", detail)
}
