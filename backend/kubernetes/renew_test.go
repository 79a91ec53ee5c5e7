package kubernetes

import (
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/llmsandbox/llmsandbox/internal/kubernetes/podspec"
)

// imagePod is a pod with an image, which its node calls by an id.
func imagePod(image, id string) *corev1.Pod {
	return &corev1.Pod{
		Spec: corev1.PodSpec{
			InitContainers: []corev1.Container{{Name: podspec.InitContainer, Image: image}},
			Containers:     []corev1.Container{{Name: "beside", Image: "other:1"}, {Name: podspec.Container, Image: image}},
		},
		Status: corev1.PodStatus{ContainerStatuses: []corev1.ContainerStatus{{Name: "beside", ImageID: "other"}, {Name: podspec.Container, ImageID: id}}},
	}
}

func TestPin(t *testing.T) {
	const sum = "@sha256:aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
	for _, c := range []struct{ image, id, want string }{
		{"python:3", "docker.io/library/python" + sum, "docker.io/library/python" + sum},
		{"registry.test:5000/a/b:1", "registry.test:5000/a/b" + sum, "registry.test:5000/a/b" + sum},
		{"python", "docker-pullable://docker.io/library/python" + sum, "docker.io/library/python" + sum},
		{"python:3", "docker.io/library/python3" + sum, "python:3"},
		{"python:3", "sha256:aaaa", "python:3"},
		{"python:3", "", "python:3"},
	} {
		pod := imagePod(c.image, "")
		pin(pod, imagePod(c.image, c.id))
		if a, b := pod.Spec.InitContainers[0].Image, pod.Spec.Containers[1].Image; a != c.want || b != c.want || pod.Spec.Containers[0].Image != "other:1" {
			t.Errorf("%s, known as %s: %s and %s, want %s", c.image, c.id, a, b, c.want)
		}
	}
}

func TestSameImage(t *testing.T) {
	for _, c := range []struct {
		was, now string
		same     bool
	}{
		{"sha256:aa", "sha256:aa", true},
		{"a@sha256:aa", "b@sha256:aa", true},
		{"a@sha256:aa", "a@sha256:bb", false},
		{"sha256:aa", "a@sha256:bb", false},
		{"sha256:aa", "", false},
	} {
		if err := sameImage(imagePod("a:1", c.now), imagePod("a:1", c.was)); (err == nil) != c.same {
			t.Errorf("%s after %s: %v, want that it is the same: %v", c.now, c.was, err, c.same)
		}
	}
}
