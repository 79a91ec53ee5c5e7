package kubernetes

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clienttesting "k8s.io/client-go/testing"

	"github.com/llmsandbox/llmsandbox/backend"
	"github.com/llmsandbox/llmsandbox/internal/kubernetes/podspec"
)

var withDisks = Options{StorageClass: "disks"}

func TestCreateVolume(t *testing.T) {
	b, client := testBackend(t, Options{StorageClass: "disks", VolumeAccess: corev1.ReadWriteMany})
	for name, c := range map[string]struct {
		size int64
		want string
	}{"none-is-asked": {0, "1Gi"}, "asked_.-": {5 << 30, "5Gi"}, strings.Repeat("9", 63): {1 << 20, "1Mi"}} {
		v, err := b.CreateVolume(t.Context(), backend.Volume{Name: name, Size: c.size, Labels: map[string]string{"any text": "\x00…"}})
		if err != nil || v.Name != name || v.Labels["any text"] != "\x00…" || v.Size == 0 {
			t.Errorf("%s: %+v, %v, want the volume", name, v, err)
		}
		claim, err := client.CoreV1().PersistentVolumeClaims(testNamespace).Get(t.Context(), podspec.VolumeClaim(name), metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if size := claim.Spec.Resources.Requests[corev1.ResourceStorage]; size.String() != c.want || *claim.Spec.StorageClassName != "disks" || claim.Spec.AccessModes[0] != corev1.ReadWriteMany || len(claim.OwnerReferences) > 0 {
			t.Errorf("%s: %+v, want %s of the class, for many, without an owner", name, claim.Spec, c.want)
		}
		if _, err := b.CreateVolume(t.Context(), backend.Volume{Name: name}); !errors.Is(err, backend.ErrVolumeExists) || !strings.Contains(err.Error(), "or remove it") {
			t.Errorf("%s again: %v, want ErrVolumeExists with a remedy", name, err)
		}
	}
	before := len(client.Actions())
	for _, v := range []backend.Volume{{Name: ""}, {Name: "../x"}, {Name: "A"}, {Name: "a/b"}, {Name: "-a"}, {Name: strings.Repeat("a", 64)}, {Name: "ä"}, {Name: "a\n"}, {Name: "a", Size: -1}} {
		if _, err := b.CreateVolume(t.Context(), v); !errors.Is(err, backend.ErrInvalid) {
			t.Errorf("%+v: %v, want ErrInvalid", v, err)
		}
		if err := b.RemoveVolume(t.Context(), v.Name, true); !errors.Is(err, backend.ErrVolumeNotFound) {
			t.Errorf("remove %q: %v, want ErrVolumeNotFound", v.Name, err)
		}
	}
	if asked := len(client.Actions()) - before; asked != 1 { // of a, whose size alone is wrong
		t.Errorf("the cluster was asked %d times about names that no volume can have", asked-1)
	}
}

// TestNoStorageClass: a claim that would never get storage is not left behind.
func TestNoStorageClass(t *testing.T) {
	b, client := testBackend(t, Options{})
	if _, err := b.CreateVolume(t.Context(), backend.Volume{Name: "v"}); !errors.Is(err, backend.ErrUnsupported) || !strings.Contains(err.Error(), "storage class") {
		t.Errorf("%v, want ErrUnsupported that names the storage class", err)
	}
	if got, want := verbs(client), []string{"create persistentvolumeclaims", "delete persistentvolumeclaims"}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

// claim is that of a volume, as CreateVolume makes it.
func claim(name string, change func(*corev1.PersistentVolumeClaim)) *corev1.PersistentVolumeClaim {
	c := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{
		Name: podspec.VolumeClaim(name), Namespace: testNamespace, UID: "claim", CreationTimestamp: metav1.NewTime(time.Unix(1e9, 0)),
		Labels:      map[string]string{podspec.LabelManagedBy: podspec.ManagedBy, podspec.LabelRole: podspec.RoleVolume},
		Annotations: map[string]string{podspec.AnnotationInfo: `{"name":"` + name + `","labels":{"of":"test"}}`, podspec.AnnotationUser: "123456"},
	}}
	if change != nil {
		change(c)
	}
	return c
}

// foreign are claims that no volume has, and names of volumes whose claims they could seem to be.
func foreign() map[string]*corev1.PersistentVolumeClaim {
	type c = corev1.PersistentVolumeClaim
	return map[string]*corev1.PersistentVolumeClaim{
		"data":       claim("data", func(c *c) { c.Labels = nil }),
		"other-role": claim("other-role", func(c *c) { c.Labels[podspec.LabelRole] = podspec.RoleSandbox }),
		"other-tool": claim("other-tool", func(c *c) { c.Labels[podspec.LabelManagedBy] = "helm" }),
		"unnamed":    claim("unnamed", func(c *c) { c.Annotations = nil }),
		"garbage":    claim("garbage", func(c *c) { c.Annotations[podspec.AnnotationInfo] = "[" }),
		"forged":     claim("forged", func(c *c) { c.Annotations[podspec.AnnotationInfo] = `{"name":"victim"}` }),
		"root":       claim("root", func(c *c) { c.Annotations[podspec.AnnotationUser] = "0" }),
		"userless":   claim("userless", func(c *c) { delete(c.Annotations, podspec.AnnotationUser) }),
		"hostile":    claim("hostile", func(c *c) { c.Annotations[podspec.AnnotationInfo] = `{"name":"../x"}` }),
		"ending": claim("ending", func(c *c) {
			c.DeletionTimestamp, c.Finalizers = new(metav1.Now()), []string{"kubernetes.io/pvc-protection"}
		}),
		"elsewhere": claim("elsewhere", func(c *c) { c.Namespace = "other" }),
	}
}

// TestForeignClaims: what is no volume is neither listed nor removed, and no sandbox gets it.
func TestForeignClaims(t *testing.T) {
	objects := []runtime.Object{claim("z", nil), claim("a", func(c *corev1.PersistentVolumeClaim) {
		c.Status.Capacity = corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("3Gi")}
	})}
	for _, c := range foreign() {
		objects = append(objects, c)
	}
	b, client := testBackend(t, withDisks, objects...)
	list, err := b.ListVolumes(t.Context())
	if err != nil || len(list) != 2 || list[0].Name != "a" || list[0].Size != 3<<30 || list[0].Labels["of"] != "test" || list[1].Name != "z" || !list[1].Created.Equal(time.Unix(1e9, 0)) {
		t.Errorf("list: %+v, %v, want a, with its capacity, and z", list, err)
	}
	for name := range foreign() {
		if err := b.RemoveVolume(t.Context(), name, true); !errors.Is(err, backend.ErrVolumeNotFound) {
			t.Errorf("remove %s: %v, want ErrVolumeNotFound", name, err)
		}
		_, err := b.Create(t.Context(), backend.Spec{ID: "x", Image: "i", Volumes: []backend.VolumeMount{{Name: "z", Target: "/z"}, {Name: name, Target: "/kept"}}})
		if !errors.Is(err, backend.ErrVolumeNotFound) || !strings.Contains(err.Error(), "create it first") {
			t.Errorf("a sandbox with %s: %v, want ErrVolumeNotFound with a remedy", name, err)
		}
	}
	for _, verb := range verbs(client) {
		if verb != "get persistentvolumeclaims" && verb != "list persistentvolumeclaims" {
			t.Errorf("%s, want reading only", verb)
		}
	}
	if _, err := b.CreateVolume(t.Context(), backend.Volume{Name: "ending"}); !errors.Is(err, backend.ErrVolumeExists) || !strings.Contains(err.Error(), "is being removed") {
		t.Errorf("create one that is being removed: %v, want ErrVolumeExists that says so", err)
	}
}

func TestRemoveVolume(t *testing.T) {
	having := func(pod *corev1.Pod, volume string) *corev1.Pod {
		pod.Spec.Volumes = []corev1.Volume{{Name: "x"}, {Name: "v", VolumeSource: corev1.VolumeSource{
			PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: podspec.VolumeClaim(volume)},
		}}}
		return pod
	}
	over := sandboxPod(t, "over", func(p *corev1.Pod, _ *backend.Info) { p.Status.Phase = corev1.PodSucceeded })
	starts := sandboxPod(t, "starts", func(p *corev1.Pod, _ *backend.Info) { p.Status.Phase = corev1.PodPending })
	theirs := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "theirs", Namespace: testNamespace, Labels: map[string]string{podspec.LabelSandbox: "forged"}}}
	b, client := testBackend(t, withDisks, claim("used", nil), claim("free", nil),
		having(sandboxPod(t, "runs", nil), "used"), having(starts, "used"), having(theirs, "used"), having(over, "free"), having(sandboxPod(t, "another", nil), "other"))
	err := b.RemoveVolume(t.Context(), "used", false)
	if !errors.Is(err, backend.ErrVolumeInUse) || !strings.Contains(err.Error(), "runs, starts, pod theirs have volume used") {
		t.Errorf("remove one in use: %v, want ErrVolumeInUse with those that have it", err)
	}
	if found, err := b.GC(t.Context()); err != nil || slices.ContainsFunc(found, func(l backend.Leftover) bool { return l.Kind != "pod" }) {
		t.Errorf("a collection finds %+v, %v, want no volumes", found, err)
	}
	if list, err := b.ListVolumes(t.Context()); err != nil || len(list) != 2 {
		t.Errorf("list: %+v, %v, want both", list, err)
	}
	for name, force := range map[string]bool{"used": true, "free": false} {
		if err := b.RemoveVolume(t.Context(), name, force); err != nil {
			t.Errorf("remove %s: %v", name, err)
		}
	}
	if list, err := b.ListVolumes(t.Context()); err != nil || len(list) > 0 {
		t.Errorf("list: %+v, %v, want none", list, err)
	}
	for _, a := range client.Actions() {
		if d, ok := a.(clienttesting.DeleteAction); ok && a.GetResource().Resource == "persistentvolumeclaims" {
			if p := d.GetDeleteOptions().Preconditions; p == nil || p.UID == nil || *p.UID != "claim" {
				t.Errorf("deleted with %+v, want only the claim that was looked at", p)
			}
		}
	}
}

// TestVolumesForbidden: who lacks the rights is told which, and where they are.
func TestVolumesForbidden(t *testing.T) {
	b, client := testBackend(t, withDisks, claim("v", nil))
	client.PrependReactor("*", "persistentvolumeclaims", func(a clienttesting.Action) (bool, runtime.Object, error) {
		return true, nil, apierrors.NewForbidden(corev1.Resource(a.GetResource().Resource), "", errors.New("no "+a.GetVerb()))
	})
	_, create := b.CreateVolume(t.Context(), backend.Volume{Name: "v"})
	_, list := b.ListVolumes(t.Context())
	_, open := b.Create(t.Context(), backend.Spec{ID: "x", Image: "i", Volumes: []backend.VolumeMount{{Name: "v", Target: "/v"}}})
	for verb, err := range map[string]error{"create": create, "list": list, "get": open} {
		if !errors.Is(err, backend.ErrUnsupported) || !strings.Contains(err.Error(), "no "+verb) || !strings.Contains(err.Error(), "deploy/") || !strings.Contains(err.Error(), "volume") {
			t.Errorf("%s: %v, want ErrUnsupported with a remedy", verb, err)
		}
	}
}

// TestVolumesOfSandbox: they are in what is kept about a sandbox, and a pod that is there already cannot have any.
func TestVolumesOfSandbox(t *testing.T) {
	asked := []backend.VolumeMount{{Name: "v", Target: "/sandbox/v", ReadOnly: true}}
	b, _ := testBackend(t, withDisks, claim("v", nil), claim("w", func(c *corev1.PersistentVolumeClaim) { c.Annotations[podspec.AnnotationUser] = "234567" }))
	for _, c := range []struct {
		volumes []backend.VolumeMount
		want    int64
	}{
		{[]backend.VolumeMount{{Name: "v", Target: "/v"}, {Name: "w", Target: "/w"}}, 123456},
		{[]backend.VolumeMount{{Name: "v", Target: "/v", ReadOnly: true}, {Name: "w", Target: "/w"}}, 234567},
	} {
		if uid, err := b.userOf(t.Context(), c.volumes); err != nil || uid != c.want {
			t.Errorf("with %+v code is user %d, %v, want %d", c.volumes, uid, err, c.want)
		}
	}
	one, err := b.userOf(t.Context(), asked)
	if other, oerr := b.userOf(t.Context(), asked); err != nil || oerr != nil || one == other || one == 123456 {
		t.Errorf("those that read a volume are users %d and %d (%v, %v), want one each", one, other, err, oerr)
	}
	pod, err := b.plan(backend.Spec{ID: "x", Image: "i", Volumes: asked}, 123456)
	if err != nil {
		t.Fatal(err)
	}
	if info, err := decodeInfo(pod); err != nil || !slices.Equal(info.Volumes, asked) {
		t.Errorf("%+v, %v, want the volumes", info, err)
	}
	b, client := testBackend(t, Options{Pod: "theirs"})
	if _, err := b.Create(t.Context(), backend.Spec{ID: "x", Volumes: asked}); !errors.Is(err, backend.ErrUnsupported) || !strings.Contains(err.Error(), "existing pod") || len(client.Actions()) > 0 {
		t.Errorf("%v after %q, want ErrUnsupported before the cluster is asked", err, verbs(client))
	}
}
