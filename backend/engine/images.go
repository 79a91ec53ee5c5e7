package engine

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/containerd/errdefs"
	"github.com/moby/moby/client"

	"github.com/llmsandbox/llmsandbox/backend"
	"github.com/llmsandbox/llmsandbox/internal/agentclient"
	"github.com/llmsandbox/llmsandbox/internal/agenthost"
	"github.com/llmsandbox/llmsandbox/internal/defaultimage"
	"github.com/llmsandbox/llmsandbox/internal/engine/image"
	"github.com/llmsandbox/llmsandbox/internal/language"
)

// defaultImages returns which images a language may use, best first: the caller's own, or
// the one that this project builds and then the official one.
func defaultImages(own map[string]string) func(language string) []string {
	return func(lang string) []string {
		if name := cmp.Or(own[lang], own[language.Family(lang)]); name != "" {
			return []string{name}
		}
		d, ok := defaultimage.For(lang)
		if !ok {
			return nil
		}
		return []string{d.Name, d.Official}
	}
}

// A LanguageImage is what sandboxes of a language are made from when they name no image.
type LanguageImage struct {
	Name    string // of the best that the engine has, else of the one that is pulled; "" for none
	Present bool
	Size    int64 // in bytes, of one that is present
}

// LanguageImage returns what sandboxes of a language are made from when they name no image.
func (b *Backend) LanguageImage(ctx context.Context, language string) (LanguageImage, error) {
	var i LanguageImage
	for _, i.Name = range b.images.Default(language) {
		res, err := b.client.ImageInspect(ctx, i.Name)
		if errdefs.IsNotFound(err) {
			continue
		}
		if err != nil {
			return i, fmt.Errorf("look for image %s: %w", i.Name, err)
		}
		i.Present, i.Size = true, res.Size
		break
	}
	return i, nil
}

// resolveImage finds, loads, pulls or builds the image of a sandbox, and prepares it for
// the environment. An image that was brought is returned with an error, too.
func (b *Backend) resolveImage(ctx context.Context, spec backend.Spec) (image.Image, error) {
	base, err := b.findImage(ctx, spec)
	if err != nil || b.options.Micromamba == nil {
		return base, err
	}
	img, err := b.prepared(ctx, spec, base)
	if err != nil {
		return base, b.explainImage(err)
	}
	return img, nil
}

func (b *Backend) findImage(ctx context.Context, spec backend.Spec) (image.Image, error) {
	if b.options.Build == nil {
		img, err := b.images.Resolve(ctx, spec.Image, spec.Language, spec.Progress)
		return img, b.explainImage(err)
	}
	if spec.Image != "" {
		return image.Image{}, fmt.Errorf("image %s: %w: only one of an image and a Dockerfile can be given", spec.Image, backend.ErrInvalid)
	}
	img, err := b.images.Build(ctx, image.Build(*b.options.Build), spec.Progress)
	return img, b.explainImage(err)
}

func (b *Backend) explainImage(err error) error { return b.explain("get the image", err) }

// dropImage removes what was brought only for a sandbox that did not come to be.
func (c *creation) dropImage(ctx context.Context) error {
	return c.backend.dropImage(context.WithoutCancel(ctx), c.spec.Image, c.image)
}

// dropImage removes an image that was pulled, loaded or built for one sandbox, unless it
// is a language's default, or to be kept, or in use by something else.
func (b *Backend) dropImage(ctx context.Context, asked string, img image.Image) error {
	if b.options.KeepImage || !img.Made || asked == "" && b.options.Build == nil {
		return nil
	}
	_, err := b.images.Remove(ctx, img)
	return err
}

// A Build is an image to make from a Dockerfile. The classic builder makes it, which
// every engine has; what only BuildKit knows, such as RUN --mount, fails on Docker.
type Build struct {
	// Dockerfile is the path of the Dockerfile; "" is Dockerfile in the context.
	Dockerfile string
	// Content is the Dockerfile itself, in place of a path.
	Content string
	// Context is the directory that COPY and ADD take from, "" is none. Its .dockerignore
	// is honoured; links in it are kept as links and not followed; what is no file,
	// directory or link is left out. Files get the owner root and one fixed time.
	Context string
	// Args are the build arguments. They are no place for secrets: the image's history
	// shows them.
	Args     map[string]string
	Target   string // stage to build; "" is the last
	Platform string // e.g. "linux/arm64"; "" is the engine's own
	// Network is the network of RUN: "" is the engine's default, "none", "host", or a
	// network's name.
	Network string
	Labels  map[string]string
	// NoCache builds every step again, also when the same build was made before.
	NoCache bool
	// Log, when set, gets what the build prints as it comes. It is not cleaned: on a
	// terminal it can do harm.
	Log io.Writer
	// MaxContext bounds the bytes of the context; 0 means 2 GiB.
	MaxContext int64
}

// Commit makes an image of the container's image, of its root file system where that can
// be written to, and of files. The owner of the files in the image does not matter: a
// sandbox of it gets them as its own.
func (h *host) Commit(ctx context.Context, tag, overwrite string, files io.Reader) (id string, skipped []string, err error) {
	b := h.backend
	c, err := b.client.ContainerInspect(ctx, h.container, client.ContainerInspectOptions{})
	if err != nil {
		return "", nil, b.explain("look at the container", err)
	}
	base, err := b.images.Resolve(ctx, c.Container.Image, "", nil)
	if err != nil {
		return "", nil, b.explain("look at the container's image", err)
	}
	o := image.Commit{Tag: tag, Overwrite: overwrite, Base: base}
	if made := c.Container.HostConfig; made != nil && !made.ReadonlyRootfs {
		if o.Base, err = b.images.Commit(ctx, h.container, o); err != nil {
			return "", nil, b.explain("make an image of the root file system", err)
		}
		o.Overwrite = tag // which is ours now
	}
	o.Workdir = h.workdir
	img, skipped, err := b.images.CommitFiles(ctx, files, h.workdir, defaultUID, defaultUID, o)
	return img.ID, skipped, b.explain("make an image of the working folder", err)
}

// restoreWorkdir puts the files that a committed image has of its sandbox's working
// directory into this one's, where the image's own directory is hidden by what is mounted.
func (b *Backend) restoreWorkdir(ctx context.Context, s *agenthost.Session, img image.Image) error {
	// Of a container without mounts, so that it is the image's.
	return b.inContainer(ctx, neverStarted(img.ID), noNetwork(), func(id string) error {
		// What is in the directory, without the directory: the sandbox's is a mount, and the
		// agent unpacks only into the file system that it was given.
		files, err := b.client.CopyFromContainer(ctx, id, client.CopyFromContainerOptions{SourcePath: img.Committed + "/."})
		if errdefs.IsNotFound(err) {
			return fmt.Errorf("image %s: %w: its label says that it has %s, and it has not", img.Ref, backend.ErrImageInvalid, img.Committed)
		}
		if err != nil {
			return b.explain("read the image's working folder", err)
		}
		defer files.Content.Close()
		return s.WithAgent(ctx, func(a *agentclient.Client) error {
			result, err := a.TarIn(ctx, s.Inside.Workdir, files.Content, agentclient.TarLimits{Links: true})
			if err == nil && len(result.Skipped) > 0 {
				err = errors.New(result.Skipped[0])
			}
			if err != nil {
				return fmt.Errorf("put the image's working folder into the sandbox: %w", err)
			}
			return nil
		})
	})
}
