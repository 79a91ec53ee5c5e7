package kubernetes

import (
	"slices"
	"testing"
)

func TestImageNames(t *testing.T) {
	const digest = "sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
	for _, c := range []struct {
		image, id string
		names     []string
		config    string
	}{
		{"registry.example/a/b:1", "registry.example/a/b@" + digest, []string{"registry.example/a/b@" + digest}, ""},
		{"registry.example/a/b:1", "docker-pullable://registry.example/a/b@" + digest, []string{"registry.example/a/b@" + digest}, ""},
		{"registry.example/a/b:1", "other.example/c@" + digest, []string{"registry.example/a/b@" + digest, "other.example/c@" + digest}, ""},
		{"busybox", "docker.io/library/busybox@" + digest, []string{"index.docker.io/library/busybox@" + digest}, ""},
		{"llmsandbox/python:1", digest, []string{"index.docker.io/llmsandbox/python:1"}, digest},
		{"registry.example/a/b:1", "docker://" + digest, []string{"registry.example/a/b:1"}, digest},
		{"registry.example/a/b:1", digest[len("sha256:"):], []string{"registry.example/a/b:1"}, digest},
		{"registry.example/a/b:1", "", nil, ""}, // the node has not said it
		{"registry.example/a/b:1", "registry.example/a/b@sha256:0", nil, ""},
		{"not a name", digest, nil, ""},
	} {
		if names, config := imageNames(c.image, c.id); !slices.Equal(names, c.names) || config != c.config {
			t.Errorf("%q, %q: %q, %q, want %q, %q", c.image, c.id, names, config, c.names, c.config)
		}
	}
}
