package image

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/containerd/errdefs"
	"github.com/distribution/reference"
	"github.com/moby/moby/api/pkg/authconfig"
	"github.com/moby/moby/api/types/build"
	"github.com/moby/moby/api/types/container"
	"github.com/moby/moby/api/types/registry"
	"github.com/moby/moby/client"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/llmsandbox/llmsandbox/backend"
	"github.com/llmsandbox/llmsandbox/internal/engine/containers"
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
	img, err := s.once(ctx, tag, progress, func(ctx context.Context, report func(backend.Progress)) (Image, error) {
		in, err := b.input() // its own: the first caller may go before the build ends
		if err != nil {
			return Image{}, err
		}
		defer in.close()
		end := backend.BeginStep(report, "build", buildMessage)
		err = s.build(ctx, b, in, tag, sum, report)
		end(err)
		if err != nil {
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
	err = containers.Pipe(func(w io.Writer) error { return in.sendAs(ctx, w, sum) }, func(r io.Reader) error {
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

const (
	lastLines   = 20   // of a build's output, in its error
	maxLastLine = 300  // bytes of one of them
	maxPartial  = 4096 // bytes of a line that has not ended
)

// stepLine is how Docker ("Step 2/5 : RUN x") and Podman ("STEP 2/5: RUN x") begin a step.
var stepLine = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^(?i:step) (\d{1,4})/(\d{1,4}) ?: `)
})

// buildMessage is what a build's reports say it works on.
const buildMessage = "the image"

// A buildLog reads what a build prints. What programs in it print can look like anything
// the builder says: it is only shown, never acted on.
type buildLog struct {
	to      io.Writer
	report  func(backend.Progress)
	at      backend.Progress
	step    string
	last    []string
	partial string
	failed  error // of writing the log
}

func newBuildLog(to io.Writer, report func(backend.Progress)) *buildLog {
	return &buildLog{to: to, report: report, at: backend.Progress{Stage: "build", Message: buildMessage}}
}

func (l *buildLog) see(m message) {
	text := m.Stream
	if text == "" && m.Status != "" { // the base image is pulled
		text = m.Status + "\n"
		if m.Progress.Total > 0 {
			return
		}
	}
	if text == "" {
		return
	}
	if l.to != nil && l.failed == nil {
		if _, err := io.WriteString(l.to, text); err != nil {
			l.failed = fmt.Errorf("write the build's log: %w", err)
		}
	}
	l.partial += text
	for {
		line, rest, ended := strings.Cut(l.partial, "\n")
		if !ended {
			break
		}
		l.partial = rest
		l.line(line)
	}
	if len(l.partial) > maxPartial {
		l.line(l.partial)
		l.partial = ""
	}
}

func (l *buildLog) line(line string) {
	if len(line) > maxLastLine {
		line = line[:maxLastLine] + "..."
	}
	line = clean(line)
	if line == "" {
		return
	}
	l.last = append(l.last, line)
	if len(l.last) > lastLines {
		l.last = l.last[1:]
	}
	if m := stepLine().FindStringSubmatch(line); m != nil {
		l.step = line
		l.at.Current, _ = strconv.ParseInt(m[1], 10, 64) // four digits at most
		l.at.Total, _ = strconv.ParseInt(m[2], 10, 64)
	}
	l.at.Output = line
	l.report(l.at)
}

// explain makes the error of a build that did not succeed.
func (l *buildLog) explain(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if client.IsErrConnectionFailed(err) || errors.Is(err, backend.ErrInvalid) || errors.Is(err, errChanged) {
		return err
	}
	l.line(l.partial)
	return &BuildError{Step: l.step, Message: clean(err.Error()), Last: l.last}
}

const (
	maxLeft = 2000 // ids kept of one build
	// removalWait bounds how long a cancelled build's container is waited for.
	removalWait = 20 * time.Second
	// listTries is how often images are listed that others are removing.
	listTries = 5
)

var (
	imageLine     = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^ ?--+> ([0-9a-f]{11,64})\s*$`) })
	containerLine = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^ ---> Running in ([0-9a-f]{12,64})\s*$`) })
)

// leftovers are what a build may have left when it fails: the images of the steps that
// succeeded. The builder names them only in its output, where a program in the build can
// name others. So what the engine had before is never touched, nor what has a name or
// is used, and containers are only waited for.
type leftovers struct {
	store      *Store
	before     map[string]bool // ids of all images
	images     []string        // said to be made, oldest first
	containers []string
}

func (s *Store) watchLeftovers(ctx context.Context) (*leftovers, error) {
	l := &leftovers{store: s}
	var err error
	if l.before, err = l.list(ctx); err != nil {
		return nil, err
	}
	return l, nil
}

// list returns the ids of all images. Podman refuses to list any when one of them is
// removed at that moment, which passes.
func (l *leftovers) list(ctx context.Context) (map[string]bool, error) {
	var res client.ImageListResult
	var err error
	for range listTries {
		if res, err = l.store.Client.ImageList(ctx, client.ImageListOptions{All: true}); !errdefs.IsInternal(err) {
			break
		}
	}
	if err != nil {
		return nil, fmt.Errorf("list the engine's images: %w", err)
	}
	ids := map[string]bool{}
	for _, i := range res.Items {
		ids[i.ID] = true
	}
	return ids, nil
}

func (l *leftovers) see(m message) {
	if f := imageLine().FindStringSubmatch(m.Stream); f != nil && len(l.images) < maxLeft {
		l.images = append(l.images, f[1])
	}
	if f := containerLine().FindStringSubmatch(m.Stream); f != nil && len(l.containers) < maxLeft {
		l.containers = append(l.containers, f[1])
	}
}

// remove removes what the build made. The engine may still be ending its last container.
func (l *leftovers) remove(ctx context.Context) error {
	wait, cancel := context.WithTimeout(ctx, removalWait)
	defer cancel()
	for _, id := range l.containers {
		end := <-containers.Wait(wait, l.store.Client, id, container.WaitConditionRemoved)
		if end.Err != nil && !containers.Absent(end.Err) {
			return fmt.Errorf("wait for the build's container %s to be removed: %w", id, end.Err)
		}
	}
	var failed error
	for i := len(l.images) - 1; i >= 0; i-- {
		failed = errors.Join(failed, l.removeImage(ctx, l.images[i]))
	}
	return failed
}

func (l *leftovers) removeImage(ctx context.Context, short string) error {
	img, err := l.store.Client.ImageInspect(ctx, short)
	if errdefs.IsNotFound(err) || err == nil && (l.before[img.ID] || len(img.RepoTags)+len(img.RepoDigests) > 0) {
		return nil
	}
	if err == nil {
		_, err = l.store.Client.ImageRemove(ctx, img.ID, client.ImageRemoveOptions{})
	}
	if err != nil && !errdefs.IsNotFound(err) && !errdefs.IsConflict(err) {
		return fmt.Errorf("remove the build's image %s: %w", short, err)
	}
	return nil
}

// hubKey is what engines call the default registry where they look up credentials.
const hubKey = "https://index.docker.io/v1/"

// baseCredentials returns the credentials for the registries that a Dockerfile takes its
// images from, by the registries' names.
func (s *Store) baseCredentials(ctx context.Context, dockerfile string, args map[string]string) (map[string]registry.AuthConfig, error) {
	if s.Auth == nil {
		return nil, nil
	}
	all := map[string]registry.AuthConfig{}
	for _, ref := range bases(dockerfile, args) {
		key := reference.Domain(ref)
		if key == "docker.io" {
			key = hubKey
		}
		if _, ok := all[key]; ok {
			continue
		}
		auth, err := s.Auth(ctx, ref.String())
		if err != nil {
			return nil, fmt.Errorf("credentials for the registry of base image %s: %w", ref, err)
		}
		if auth == "" {
			continue
		}
		c, err := authconfig.Decode(auth)
		if err != nil { // not its text, which may have parts of the secret
			return nil, fmt.Errorf("credentials for the registry of base image %s are not in the engine's form", ref)
		}
		all[key] = *c
	}
	return all, nil
}

// bases are the images that a Dockerfile's FROM lines name, with the arguments before
// the first FROM filled in. What is not understood is the builder's to complain about.
func bases(dockerfile string, args map[string]string) []reference.Named {
	vars := map[string]string{}
	stages := map[string]bool{"scratch": true}
	var list []reference.Named
	inStage := false
	for line := range strings.Lines(dockerfile) {
		words := strings.Fields(line)
		if len(words) < 2 {
			continue
		}
		switch strings.ToUpper(words[0]) {
		case "ARG":
			if inStage {
				continue // only a stage sees it
			}
			name, value, _ := strings.Cut(words[1], "=")
			if given, ok := args[name]; ok {
				value = given
			}
			vars[name] = strings.Trim(value, `"'`)
		case "FROM":
			inStage = true
			words = words[1:]
			for len(words) > 1 && strings.HasPrefix(words[0], "--") {
				words = words[1:]
			}
			name := os.Expand(words[0], func(v string) string {
				v, or, _ := strings.Cut(v, ":-")
				if vars[v] == "" {
					return or
				}
				return vars[v]
			})
			if ref, err := reference.ParseNormalizedNamed(name); err == nil && !stages[name] {
				list = append(list, reference.TagNameOnly(ref))
			}
			if len(words) == 3 && strings.EqualFold(words[1], "AS") {
				stages[words[2]] = true
			}
		}
	}
	return list
}
