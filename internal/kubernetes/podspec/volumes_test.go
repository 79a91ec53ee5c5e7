package podspec

import (
	"errors"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/llmsandbox/llmsandbox/backend"
)

// withVolumes is a sandbox that has three volumes at four places.
func withVolumes() Request {
	r := plain()
	r.Spec.Volumes = []backend.VolumeMount{
		{Name: "cache", Target: "/sandbox/cache"}, {Name: "models", Target: "/models", ReadOnly: true},
		{Name: "cache", Target: "/again", ReadOnly: true}, {Name: "0._x-", Target: "/x"},
	}
	return r
}

// TestVolumeClaim: every volume has a claim of its own, of a name that an object can have.
func TestVolumeClaim(t *testing.T) {
	seen := map[string]string{}
	for _, name := range []string{"a", "a-", "a.", "a_", "a..b", "a.b", "0", strings.Repeat("a", 62), strings.Repeat("a", 63)} {
		claim := VolumeClaim(name)
		if why := validation.IsDNS1123Label(claim); len(why) > 0 || seen[claim] != "" {
			t.Errorf("%s has the claim %s (%v), which is that of %q", name, claim, why, seen[claim])
		}
		seen[claim] = name
	}
}

// TestVolumesWhere: what else is mounted, by the template, too, is not hidden.
func TestVolumesWhere(t *testing.T) {
	template := `{spec: {volumes: [{name: d, emptyDir: {sizeLimit: 1Gi}}], containers: [{volumeMounts: [{name: d, mountPath: /data/}]}]}}`
	for _, c := range []struct {
		target, template string
		ok               bool
	}{
		{"/sandbox/v", template, true}, {"/data2", template, true}, {"/data", "", true}, {"/srv/project/v", "", true},
		{"/data", template, false}, {"/data/v", template, false}, {"/", "", false}, {"/sandbox", "", false}, {"/tmp/v", "", false}, {"/.llmsandbox/v", "", false},
		{"/dev/shm", "", false}, {"/opt/libraries/v", "", false}, {"/srv", "", false}, {"/srv/project", "", false}, {"v", "", false}, {"/a/../b", "", false}, {"/a\n", "", false}, {"/a:b", "", false},
	} {
		r := plain()
		if c.template != "" {
			r = with(t, c.template)
		}
		r.Spec.Volumes, r.Spec.Layers, r.Spec.Workdir = []backend.VolumeMount{{Name: "v", Target: c.target}}, []backend.Layer{{Target: "/opt/libraries"}}, "/srv/project"
		if _, err := Build(r); (err == nil) != c.ok || err != nil && !errors.Is(err, backend.ErrInvalid) {
			t.Errorf("at %q with the template %q: %v, want ok = %v, or ErrInvalid", c.target, c.template, err, c.ok)
		}
	}
	r := plain()
	r.Spec.Volumes = []backend.VolumeMount{{Name: "../v", Target: "/v"}}
	if _, err := Build(r); !errors.Is(err, backend.ErrInvalid) {
		t.Errorf("a name that no volume can have: %v, want ErrInvalid", err)
	}
}

func TestHasVolumes(t *testing.T) {
	r := withVolumes()
	if err := HasVolumes(build(t, r), r.Spec.Volumes); err != nil {
		t.Error(err)
	}
	for what, change := range map[string]func(*corev1.Pod){
		"another claim": func(p *corev1.Pod) {
			for _, v := range p.Spec.Volumes {
				if v.PersistentVolumeClaim != nil {
					v.PersistentVolumeClaim.ClaimName = "other"
				}
			}
		},
		"no mounts": func(p *corev1.Pod) { p.Spec.Containers[0].VolumeMounts = nil },
		"no volume": func(p *corev1.Pod) { p.Spec.Volumes = nil },
		"writable": func(p *corev1.Pod) {
			for i := range p.Spec.Containers[0].VolumeMounts {
				p.Spec.Containers[0].VolumeMounts[i].ReadOnly = false
			}
		},
	} {
		p := build(t, r)
		change(p)
		if err := HasVolumes(p, r.Spec.Volumes); !errors.Is(err, backend.ErrUnsupported) {
			t.Errorf("%s: %v, want ErrUnsupported", what, err)
		}
	}
}

func TestVolumeControls(t *testing.T) {
	get := func(r Request, name string) (backend.Control, bool) {
		return Controls(build(t, r), r.Spec.Limits, Policies{}).Get(name)
	}
	r := withVolumes()
	if c, _ := get(r, "volumes"); !c.Enforced || c.Detail != "/sandbox/cache (rw), /models (ro), /again (ro), /x (rw)" {
		t.Errorf("%+v, want where they are", c)
	}
	if c, ok := get(r, "volume-size"); !ok || c.Enforced || c.Why == "" || c.Fix == "" {
		t.Errorf("%+v, want it not enforced", c)
	}
	r.Spec.Volumes = r.Spec.Volumes[1:3]
	if c, ok := get(r, "volume-size"); ok {
		t.Errorf("%+v of volumes that nothing is written to, want none", c)
	}
	for _, name := range []string{"volumes", "volume-size"} {
		if c, ok := get(plain(), name); ok {
			t.Errorf("%+v without volumes, want none", c)
		}
	}
}
