package image

import (
	"context"
	"encoding/hex"
	"fmt"
	"io"
	"maps"
	"strings"

	"github.com/moby/moby/api/types/build"
	"github.com/moby/moby/client"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/llmsandbox/llmsandbox/backend"
)

// LabelBuild is on every image that Build made; its value is the digest of what went in.
const LabelBuild = "llmsandbox.build"

// A Build is an image to make from a Dockerfile, as engine.Build has it: a package that
// that one is made of cannot name it.
type Build struct {
	Dockerfile, Content, Context string
	Args                         map[string]string
	Target, Platform, Network    string
	Labels                       map[string]string
	NoCache                      bool
	Log                          io.Writer
	MaxContext                   int64 // 0 means 2 GiB
}

// A BuildError is a build that failed by what its Dockerfile says. It wraps
// backend.ErrImageInvalid.
type BuildError struct {
	Step    string   // the step that failed, e.g. "Step 3/4 : RUN make"; "" before the first
	Message string   // the engine's message
	Last    []string // the last lines that were printed
}

func (e *BuildError) Error() string {
	var b strings.Builder
	b.WriteString("the build failed")
	if e.Step != "" {
		fmt.Fprintf(&b, " at %q", e.Step)
	}
	fmt.Fprintf(&b, ": %s", e.Message)
	if len(e.Last) > 0 {
		fmt.Fprintf(&b, "; the last lines are:\n%s", strings.Join(e.Last, "\n"))
	}
	return b.String()
}

// Unwrap returns backend.ErrImageInvalid.
func (e *BuildError) Unwrap() error { return backend.ErrImageInvalid }

// Build makes the image, unless the same was built before from the same files. Its name
// is llmsandbox-build: and the digest of all that went in; the base image counts by its
// name only. progress gets the steps; it may be nil. A failed or cancelled build
// leaves no container and no image; but Podman goes on with the step that a cancelled
// build is in until it ends, since its API cannot stop it.
func (s *Store) Build(ctx context.Context, b Build, progress func(backend.Progress)) (Image, error) {
	in, err := b.input()
	if err != nil {
		return Image{}, fmt.Errorf("build image: %w", err)
	}
	defer in.close()
	sum, err := in.digest(ctx)
	if err != nil {
		return Image{}, fmt.Errorf("build image: %w", err)
	}
	tag := "llmsandbox-build:" + hex.EncodeToString(sum)
	before := ""
	if img, found, err := s.usable(ctx, tag); err != nil || found && !b.NoCache {
		return img, err
	} else if found {
		before = img.ID
	}
	img, err := s.flights.do(ctx, tag, progress, func(ctx context.Context, report func(backend.Progress)) (Image, error) {
		in, err := b.input() // its own: the first caller may go before the build ends
		if err != nil {
			return Image{}, err
		}
		defer in.close()
		if err := s.build(ctx, b, in, tag, sum, report); err != nil {
			return Image{}, err
		}
		img, found, err := s.usable(ctx, tag)
		if err == nil && !found {
			err = fmt.Errorf("the engine built it without an error and does not have it: it was removed, or its store is broken: %w", backend.ErrImageNotFound)
		}
		img.Made = before == ""
		return img, err
	})
	if err != nil {
		return Image{}, fmt.Errorf("build image: %w", err)
	}
	return img, nil
}

// build runs one build. It cleans up after one that does not succeed.
func (s *Store) build(ctx context.Context, b Build, in *input, tag string, sum []byte, report func(backend.Progress)) error {
	options, err := s.buildOptions(ctx, b, in, tag, sum)
	if err != nil {
		return err
	}
	left, err := s.watchLeftovers(ctx)
	if err != nil {
		return err
	}
	log := newBuildLog(b.Log, report)
	err = stream(func(w io.Writer) error { return in.sendAs(ctx, w, sum) }, func(r io.Reader) error {
		res, err := s.Client.ImageBuild(ctx, r, options)
		if err != nil {
			return err
		}
		defer res.Body.Close()
		return eachMessage(res.Body, func(m message) {
			log.see(m)
			left.see(m)
		})
	})
	if err == nil {
		return log.failed
	}
	cleanup := left.remove(context.WithoutCancel(ctx))
	return joined(log.explain(ctx, err), cleanup)
}

func (s *Store) buildOptions(ctx context.Context, b Build, in *input, tag string, sum []byte) (client.ImageBuildOptions, error) {
	o := client.ImageBuildOptions{
		Tags: []string{tag}, Dockerfile: dockerfileName, Target: b.Target, NetworkMode: b.Network,
		NoCache: b.NoCache, Remove: true, ForceRemove: true, Version: build.BuilderV1,
		BuildArgs: map[string]*string{}, Labels: maps.Clone(b.Labels),
	}
	for k, v := range b.Args {
		o.BuildArgs[k] = &v
	}
	if o.Labels == nil {
		o.Labels = map[string]string{}
	}
	o.Labels[LabelBuild] = hex.EncodeToString(sum)
	if b.Platform != "" {
		os, arch, ok := strings.Cut(b.Platform, "/")
		if !ok || os != "linux" || arch != "amd64" && arch != "arm64" {
			return o, fmt.Errorf("%w: platform %q: sandboxes run linux/amd64 and linux/arm64 only", backend.ErrInvalid, b.Platform)
		}
		o.Platforms = []ocispec.Platform{{OS: os, Architecture: arch}}
	}
	var err error
	o.AuthConfigs, err = s.baseCredentials(ctx, string(in.dockerfile), b.Args)
	return o, err
}
