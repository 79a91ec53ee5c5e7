package kubernetes

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/llmsandbox/llmsandbox/backend"
)

func TestImage(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "oci-layout"), []byte(`{"imageLayoutVersion":"1.0.0"}`), 0o600); err != nil {
		t.Fatal(err)
	}
	template := &corev1.PodTemplateSpec{Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "sandbox", Image: "of/template:1"}}}}
	own := Options{Images: map[string]string{"python": "registry.test/own:2"}}
	const digest = "registry.test:5000/a/b@sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
	for _, c := range []struct {
		name  string
		o     Options
		image string
		lang  string
		want  string
		err   error
	}{
		{"default", Options{}, "", "python", "llmsandbox/python:1", nil},
		{"own default", own, "", "python", "registry.test/own:2", nil},
		{"own default of another language", own, "", "ruby", "llmsandbox/ruby:1", nil},
		{"the template's", Options{Template: template}, "", "python", "of/template:1", nil},
		{"asked for", own, "python:3.13", "python", "python:3.13", nil},
		{"prefix", Options{}, "docker://python:3.13", "python", "python:3.13", nil},
		{"digest", Options{}, digest, "python", digest, nil},
		{"no default", Options{}, "", "cobol", "", backend.ErrImageNotFound},
		{"host", Options{}, "host", "python", "", backend.ErrImageInvalid},
		{"folder", Options{}, dir, "python", "", backend.ErrImageInvalid},
		{"no such file", Options{}, "./image.tar", "python", "", backend.ErrImageNotFound},
		{"no reference", Options{}, "UPPER case", "python", "", backend.ErrImageNotFound},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, err := c.o.image(backend.Spec{Image: c.image, Language: c.lang})
			if got != c.want || (err == nil) != (c.want != "") || c.err != nil && !errors.Is(err, c.err) {
				t.Errorf("%q, %v; want %q, %v", got, err, c.want, c.err)
			}
		})
	}
}

func TestToolchain(t *testing.T) {
	a, _ := testBackend(t, Options{})
	b, _ := testBackend(t, Options{NodeSelector: map[string]string{"kubernetes.io/arch": "arm64"}})
	seen := map[string]bool{}
	for _, x := range []*Backend{a, b} {
		for _, image := range []string{"", "python:3.13"} {
			l, err := x.Layers()
			if err != nil {
				t.Fatal(err)
			}
			f, err := l.Toolchain(t.Context(), backend.Spec{Image: image, Language: "python"}, "python3", nil)
			if err != nil || f == "" || seen[f] {
				t.Errorf("toolchain %q (%v) of image %q: want another one for each", f, err, image)
			}
			seen[f] = true
		}
	}
	e, _ := testBackend(t, Options{Pod: "p"})
	if l, err := e.Layers(); l != nil || !errors.Is(err, backend.ErrUnsupported) {
		t.Errorf("layers in an existing pod: got %v, %v, want none and %v", l, err, backend.ErrUnsupported)
	}
}
