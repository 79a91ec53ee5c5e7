package podspec

import (
	"fmt"
	"path"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/llmsandbox/llmsandbox/backend"
)

// Build returns the pod of a sandbox, without a namespace. Nothing of the request is
// changed or shared with the pod. An error wraps backend.ErrInvalid.
func Build(r Request) (*corev1.Pod, error) {
	if err := Validate(r.Template); err != nil {
		return nil, err
	}
	over := r.Template.DeepCopy()
	if over == nil {
		over = &corev1.PodTemplateSpec{}
	}
	if err := check(r, over); err != nil {
		return nil, err
	}
	if c := over.Spec.RuntimeClassName; c != nil {
		r.RuntimeClass = *c // the same, if it is said twice
	}
	under := base(r)
	limits := limitResources(r)
	under.Spec.Containers[0].Resources.Limits = limits
	merged, err := merge(under, over)
	if err != nil {
		return nil, err
	}
	settle(&merged, over, r)
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
			return invalid("layer at %q: choose another folder", l.Target)
		}
		for _, m := range own.VolumeMounts {
			if path.Clean(m.MountPath) == at {
				return invalid("the pod template mounts %s at %s, where the sandbox has libraries: choose another folder", m.Name, at)
			}
		}
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
