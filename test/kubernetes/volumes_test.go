//go:build linux

package kubernetes

import (
	"errors"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/client-go/tools/cache"
	watchtools "k8s.io/client-go/tools/watch"

	"github.com/llmsandbox/llmsandbox"
	"github.com/llmsandbox/llmsandbox/backend/kubernetes"
	"github.com/llmsandbox/llmsandbox/internal/kubernetes/podspec"
	"github.com/llmsandbox/llmsandbox/internal/testfaults"
)

// withStorage gives the cluster a class of storage, of which it has none, with room for that many claims of at most 2 GiB, until the test ends.
func (p place) withStorage(t *testing.T, mode storagev1.VolumeBindingMode, claims int) (class string) {
	t.Helper()
	classes := p.client.StorageV1().StorageClasses()
	made, err := classes.Create(testfaults.Context(t), &storagev1.StorageClass{
		ObjectMeta: metav1.ObjectMeta{GenerateName: "test-"}, Provisioner: "kubernetes.io/no-provisioner", VolumeBindingMode: &mode,
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := classes.Delete(testfaults.Context(t), made.Name, metav1.DeleteOptions{}); err != nil {
			t.Error(err)
		}
	})
	for range claims {
		p.addStorage(t, made.Name)
	}
	return made.Name
}

// addStorage gives a class room for one claim more.
func (p place) addStorage(t *testing.T, class string) {
	t.Helper()
	ctx := testfaults.Context(t)
	nodes, err := p.client.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
	if err != nil || len(nodes.Items) == 0 {
		t.Fatalf("nodes: %+v, %v, want one", nodes, err)
	}
	made, err := p.client.CoreV1().PersistentVolumes().Create(ctx, &corev1.PersistentVolume{
		ObjectMeta: metav1.ObjectMeta{GenerateName: class + "-"},
		Spec: corev1.PersistentVolumeSpec{
			StorageClassName: class, AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
			Capacity:                      corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("2Gi")},
			PersistentVolumeSource:        corev1.PersistentVolumeSource{Local: &corev1.LocalVolumeSource{Path: t.TempDir()}},
			PersistentVolumeReclaimPolicy: corev1.PersistentVolumeReclaimRetain,
			NodeAffinity: &corev1.VolumeNodeAffinity{Required: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{
				MatchExpressions: []corev1.NodeSelectorRequirement{{Key: corev1.LabelHostname, Operator: corev1.NodeSelectorOpIn, Values: []string{nodes.Items[0].Labels[corev1.LabelHostname]}}},
			}}}},
		},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := p.client.CoreV1().PersistentVolumes().Delete(testfaults.Context(t), made.Name, metav1.DeleteOptions{}); err != nil {
			t.Error(err)
		}
	})
}

// TestVolumes has what the conformance suite has not: users of their own, other claims, forced removal, and garbage collection.
func TestVolumes(t *testing.T) {
	onBothKernels(t, func(t *testing.T, p place, _ *kubernetes.Backend) {
		p.StorageClass = p.withStorage(t, storagev1.VolumeBindingWaitForFirstConsumer, 1)
		b := p.newBackend(t, nil)
		ctx := testfaults.Context(t)
		if _, err := llmsandbox.CreateVolume(ctx, b, llmsandbox.Volume{Name: "kept_.", Size: 1 << 30}); err != nil {
			t.Fatal(err)
		}
		o := llmsandbox.Options{Volumes: []llmsandbox.VolumeMount{{Name: "kept_.", Target: "/kept"}}}
		first, second := p.openRoot(t, b, o), p.openRoot(t, b, o)
		reads := p.openRoot(t, b, llmsandbox.Options{Volumes: []llmsandbox.VolumeMount{{Name: "kept_.", Target: "/kept", ReadOnly: true}}})
		wantInside(t, first, "mkdir -m 700 /kept/own && echo one >/kept/own/file && chmod 600 /kept/own/file && echo two >/kept/file && ls /kept", "file\nown\n")
		wantInside(t, second, "echo two >>/kept/own/file && cat /kept/own/file && rm /kept/file && echo shared >/kept/file && chmod 640 /kept/file", "one\ntwo\n")
		wantInside(t, first, "cat /kept/file", "shared\n")
		wantInside(t, reads, "cat /kept/file; cat /kept/own/file 2>/dev/null || echo private; (echo x >/kept/new) 2>/dev/null || echo read-only", "shared\nprivate\nread-only\n")
		for _, sb := range []*llmsandbox.Sandbox{first, reads} {
			if c, _ := sb.Capabilities().Get("pids"); c.Enforced != (sb == reads && p.RuntimeClass == "") {
				t.Errorf("control pids is %+v, want it enforced for a user of one sandbox only", c)
			}
		}
		list, err := llmsandbox.ListVolumes(ctx, b)
		if err != nil || len(list) != 1 || list[0].Size != 2<<30 { // which is bound to what is larger
			t.Errorf("%+v, %v, want the volume with the size that it has got", list, err)
		}
		if infos, err := b.List(ctx); err != nil || len(infos) != 3 || !slices.Equal(infos[0].Volumes, o.Volumes) {
			t.Errorf("%+v, %v, want the sandboxes with the volume", infos, err)
		}
		testfaults.Close(t, first)
		testfaults.Close(t, second)
		testfaults.Close(t, reads)
		third := p.openRoot(t, b, o)
		wantInside(t, third, "echo three >>/kept/own/file && cat /kept/own/file && ls -a /kept", "one\ntwo\nthree\n.\n..\nfile\nown\n")
		if found, err := b.GC(ctx); err != nil || len(found) > 0 {
			t.Errorf("a collection finds %+v, %v, want nothing", found, err)
		}
		if err := llmsandbox.RemoveVolume(ctx, b, "kept_.", false); !errors.Is(err, llmsandbox.ErrVolumeInUse) || !strings.Contains(err.Error(), third.ID()) {
			t.Errorf("remove while it is in use: %v, want ErrVolumeInUse with the id", err)
		}
		if err := llmsandbox.RemoveVolume(ctx, b, "kept_.", true); err != nil {
			t.Errorf("force it: %v", err)
		}
		wantInside(t, third, "cat /kept/file", "shared\n")
		if _, err := llmsandbox.CreateVolume(ctx, b, llmsandbox.Volume{Name: "kept_."}); !errors.Is(err, llmsandbox.ErrVolumeExists) || !strings.Contains(err.Error(), "is being removed") {
			t.Errorf("create it while it is being removed: %v, want ErrVolumeExists that says so", err)
		}
		o.Backend, o.Language = b, "bash"
		if sb, err := llmsandbox.Open(ctx, &o); !errors.Is(err, llmsandbox.ErrVolumeNotFound) {
			t.Errorf("open with it while it is being removed: %v, %v, want ErrVolumeNotFound", sb, err)
		}
		testfaults.Close(t, third)
		claims := cache.NewListWatchFromClient(p.client.CoreV1().RESTClient(), "persistentvolumeclaims", p.Namespace, fields.OneTermEqualSelector("metadata.name", podspec.VolumeClaim("kept_.")))
		if _, err := watchtools.UntilWithSync(ctx, claims, &corev1.PersistentVolumeClaim{}, none, deleted); err != nil {
			t.Errorf("the claim is still there after the last sandbox: %v", err)
		}
	})
}

// TestVolumeWithoutStorage: what the cluster does not give is refused with a remedy, and what it gives later is waited for.
func TestVolumeWithoutStorage(t *testing.T) {
	beside(t)
	p := newPlace(t)
	ctx := testfaults.Context(t)
	if _, err := llmsandbox.CreateVolume(ctx, p.newBackend(t, nil), llmsandbox.Volume{Name: "nowhere"}); !errors.Is(err, llmsandbox.ErrUnsupported) || !strings.Contains(err.Error(), "storage class") {
		t.Errorf("where there is no class: %v, want ErrUnsupported that says so", err)
	}
	p.StorageClass = p.withStorage(t, storagev1.VolumeBindingImmediate, 0)
	b := p.newBackend(t, func(o *kubernetes.Options) { o.WaitForNode = 0 })
	if _, err := llmsandbox.CreateVolume(ctx, b, llmsandbox.Volume{Name: "v"}); err != nil {
		t.Fatal(err)
	}
	pods, err := p.client.CoreV1().Pods(p.Namespace).Watch(ctx, metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer pods.Stop()
	o := p.sandbox(t, b)
	o.Volumes = []llmsandbox.VolumeMount{{Name: "v", Target: "/kept"}}
	opened := make(chan error, 1)
	go func() {
		sb, err := llmsandbox.Open(ctx, &o)
		if err == nil {
			err = sb.Close()
		}
		opened <- err
	}()
	unschedulable(t, pods)
	select {
	case err := <-opened:
		t.Fatalf("without storage: %v, want it to be waited for", err)
	default:
	}
	p.addStorage(t, p.StorageClass)
	if err := <-opened; err != nil {
		t.Errorf("with storage: %v", err)
	}
	_, err = p.client.CoreV1().ResourceQuotas(p.Namespace).Create(ctx, &corev1.ResourceQuota{
		ObjectMeta: metav1.ObjectMeta{Name: "volumes"}, Spec: corev1.ResourceQuotaSpec{Hard: corev1.ResourceList{corev1.ResourceRequestsStorage: resource.MustParse("3Gi")}},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	p.awaitQuota(t, "volumes")
	for err == nil { // what admits a claim may learn of the quota after who wrote its status
		if _, err = llmsandbox.CreateVolume(ctx, b, llmsandbox.Volume{Name: "large", Size: 3 << 30}); err == nil {
			if err := llmsandbox.RemoveVolume(ctx, b, "large", false); err != nil {
				t.Fatal(err)
			}
		}
	}
	if !strings.Contains(err.Error(), "exceeded quota") || !strings.Contains(err.Error(), "remove volumes") {
		t.Errorf("more than the quota: %v, want the cluster's reason and a remedy", err)
	}
	if list, err := llmsandbox.ListVolumes(ctx, b); err != nil || len(list) != 1 || list[0].Name != "v" {
		t.Errorf("%+v, %v, want v alone", list, err)
	}
	for range 5 { // its name is free when it was removed
		if err := llmsandbox.RemoveVolume(ctx, b, "v", false); err != nil {
			t.Error(err)
		}
		if _, err := llmsandbox.CreateVolume(ctx, b, llmsandbox.Volume{Name: "v"}); err != nil {
			t.Fatal(err)
		}
	}
}
