package podspec

import (
	"encoding/json"
	"fmt"
	"path"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/strategicpatch"

	"github.com/llmsandbox/llmsandbox/backend"
)

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

// patchOf is what a template says, and nothing of what it leaves out.
func patchOf(t *corev1.PodTemplateSpec) (map[string]any, error) {
	t = t.DeepCopy()
	if i := ours(t.Spec.Containers); i >= 0 {
		c := &t.Spec.Containers[i]
		c.Name = Container
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
