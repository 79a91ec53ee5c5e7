//go:build linux

package kubernetes

import (
	"errors"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	nodev1 "k8s.io/api/node/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/llmsandbox/llmsandbox"
	"github.com/llmsandbox/llmsandbox/backend/kubernetes"
	"github.com/llmsandbox/llmsandbox/internal/testfaults"
)

// refusals are pods that the cluster does not make, or that do not start, and what the
// error then says: of the cluster's own words.
var refusals = []struct {
	name    string
	prepare func(*testing.T, place)
	options func(*kubernetes.Options)
	open    func(*llmsandbox.Options)
	is      error // what the error is, where there is one for it
	says    []string
}{
	{
		name: "quota", says: []string{"exceeded quota", "pods"},
		prepare: func(t *testing.T, p place) { p.limitPods(t, 0) },
	},
	{
		name: "pod security", says: []string{"violates PodSecurity", "privileged"},
		options: func(o *kubernetes.Options) {
			yes := true
			o.Template = &corev1.PodTemplateSpec{Spec: corev1.PodSpec{Containers: []corev1.Container{{
				Name: "sandbox", SecurityContext: &corev1.SecurityContext{Privileged: &yes, AllowPrivilegeEscalation: &yes},
			}}}}
		},
	},
	{
		name: "image that is not there", is: llmsandbox.ErrImageNotFound, says: []string{"localhost/llmsandbox-none:1"},
		options: func(o *kubernetes.Options) { o.PullPolicy = corev1.PullNever },
		open:    func(o *llmsandbox.Options) { o.Image = "localhost/llmsandbox-none:1" },
	},
	{
		name: "image that nobody has", is: llmsandbox.ErrImageNotFound, says: []string{"127.0.0.1:1/llmsandbox-none:1"},
		open: func(o *llmsandbox.Options) { o.Image = "127.0.0.1:1/llmsandbox-none:1" },
	},
	{
		name: "name that is none", says: []string{"//not an image"},
		open: func(o *llmsandbox.Options) { o.Image = "//not an image" },
	},
	{
		name: "no such node", says: []string{"node", "selector"},
		options: func(o *kubernetes.Options) {
			o.NodeSelector, o.WaitForNode = map[string]string{"llmsandbox.test/none": "here"}, 0
		},
	},
	{
		name: "more than a node has", says: []string{"Insufficient memory"},
		options: func(o *kubernetes.Options) {
			o.WaitForNode = 0
			o.Template = &corev1.PodTemplateSpec{Spec: corev1.PodSpec{Containers: []corev1.Container{{
				Name: "sandbox", Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("1Ti")}, Limits: corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("1Ti")}},
			}}}}
		},
	},
	{
		name: "no such runtime class", says: []string{"llmsandbox-none", "RuntimeClass"},
		options: func(o *kubernetes.Options) { o.RuntimeClass = "llmsandbox-none" },
	},
	{
		name: "runtime class of no runtime", says: []string{"no runtime for", "llmsandbox-nowhere"},
		prepare: func(t *testing.T, p place) {
			classes := p.client.NodeV1().RuntimeClasses()
			class := &nodev1.RuntimeClass{ObjectMeta: metav1.ObjectMeta{Name: p.Namespace}, Handler: "llmsandbox-nowhere"}
			if _, err := classes.Create(testfaults.Context(t), class, metav1.CreateOptions{}); err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() {
				if err := classes.Delete(testfaults.Context(t), p.Namespace, metav1.DeleteOptions{}); err != nil {
					t.Error(err)
				}
			})
		},
		options: func(o *kubernetes.Options) { o.RuntimeClass = o.Namespace },
	},
	{
		name: "volume of a secret that is not there", says: []string{"llmsandbox-none", "secret"},
		options: func(o *kubernetes.Options) {
			o.Template = &corev1.PodTemplateSpec{Spec: corev1.PodSpec{
				Volumes: []corev1.Volume{{Name: "none", VolumeSource: corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: "llmsandbox-none"}}}},
				Containers: []corev1.Container{{
					Name: "sandbox", VolumeMounts: []corev1.VolumeMount{{Name: "none", MountPath: "/none"}},
				}},
			}}
		},
	},
	{
		name: "service account that is not there", says: []string{"serviceaccount", "llmsandbox-none"},
		options: func(o *kubernetes.Options) { o.ServiceAccount = "llmsandbox-none" },
	},
}

// awaitQuota waits until a quota is in force.
func (p place) awaitQuota(t *testing.T, name string) {
	t.Helper()
	w, err := p.client.CoreV1().ResourceQuotas(p.Namespace).Watch(testfaults.Context(t), metav1.ListOptions{FieldSelector: "metadata.name=" + name})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Stop()
	for e := range w.ResultChan() {
		if q, ok := e.Object.(*corev1.ResourceQuota); ok && len(q.Status.Hard) > 0 {
			return
		}
	}
	t.Fatalf("the quota %s is not in force, want it to count", name)
}

// A pod that does not start ends the wait for it soon, with the cluster's own words, and
// leaves nothing.
func TestFaultsRefused(t *testing.T) {
	beside(t)
	for _, r := range refusals {
		t.Run(r.name, func(t *testing.T) {
			p := newPlace(t)
			b := p.newBackend(t, r.options)
			o := p.sandbox(t, b)
			if r.prepare != nil {
				r.prepare(t, p)
			}
			if r.open != nil {
				r.open(&o)
			}
			start := time.Now()
			sb, err := llmsandbox.Open(testfaults.Context(t), &o)
			if err == nil {
				_ = sb.Close()
				t.Fatal("it opens: got no error, want an error")
			}
			t.Logf("after %v: %v", time.Since(start), err)
			if d := time.Since(start); d > 45*time.Second {
				t.Errorf("that was found out after %v, want at most 45s", d)
			}
			if r.is != nil && !errors.Is(err, r.is) {
				t.Errorf("%v: want %v", err, r.is)
			}
			for _, text := range r.says {
				if !strings.Contains(strings.ToLower(err.Error()), strings.ToLower(text)) {
					t.Errorf("%v: want %q in it", err, text)
				}
			}
			p.wantNothing(t, b)
		})
	}
}
