package kubernetes

import (
	"fmt"
	"strings"

	"github.com/distribution/reference"

	"github.com/llmsandbox/llmsandbox/backend"
	"github.com/llmsandbox/llmsandbox/internal/defaultimage"
	"github.com/llmsandbox/llmsandbox/internal/kubernetes/podspec"
	"github.com/llmsandbox/llmsandbox/internal/ociimage"
)

// image is the reference of a sandbox's image: the one that is asked for, or the
// template's, or the language's default. Whether the cluster can get it, its nodes find out.
func (o Options) image(spec backend.Spec) (string, error) {
	switch spec.Image {
	case "":
		if name := podspec.Image(o.Template); name != "" {
			return name, nil
		}
		return o.defaultImage(spec.Language)
	case "host":
		return "", fmt.Errorf("image host: %w: a pod cannot use this machine's own toolchains, only the local backend can: name an image that the cluster can pull, or leave it out for the language's default", backend.ErrImageInvalid)
	}
	place, err := ociimage.Locate(spec.Image)
	if err != nil {
		return "", err
	}
	if place.OnDisk() {
		return "", fmt.Errorf("image %s: %w: the cluster's nodes cannot read files of this machine: push it to a registry that they can reach, or import it on the nodes, and name it as they do", spec.Image, backend.ErrImageInvalid)
	}
	name := strings.TrimPrefix(spec.Image, "docker://")
	if _, err := reference.ParseAnyReference(name); err != nil {
		return "", fmt.Errorf("image %s: it is no folder or file here, and no valid reference (%w): %w", name, err, backend.ErrImageNotFound)
	}
	return name, nil
}

func (o Options) defaultImage(language string) (string, error) {
	if name := o.Images[language]; name != "" {
		return name, nil
	}
	d, ok := defaultimage.For(language)
	if !ok {
		return "", fmt.Errorf("language %q has no default image here: name one: %w", language, backend.ErrImageNotFound)
	}
	return d.Name, nil
}
