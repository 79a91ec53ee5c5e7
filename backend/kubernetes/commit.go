package kubernetes

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"

	"github.com/google/go-containerregistry/pkg/name"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/llmsandbox/llmsandbox/backend"
	"github.com/llmsandbox/llmsandbox/internal/agentclient"
	"github.com/llmsandbox/llmsandbox/internal/kubernetes/access"
	"github.com/llmsandbox/llmsandbox/internal/kubernetes/podspec"
	"github.com/llmsandbox/llmsandbox/internal/ociimage"
)

// codeID owns the files of the working directory in an image, as on all backends: a pod's own user is this sandbox's alone.
const codeID = 1000

// Commit writes the pod's image, with what code has written, to a file here. A cluster gives nobody the layers of an image, so they
// are read from its registry; and nobody the changes of a root file system, so the agent tells what there is, and it is compared.
func (h *host) Commit(ctx context.Context, file, overwrite string, files io.Reader) (string, []string, error) {
	if h.uid == "" {
		return "", nil, fmt.Errorf("%w: what has written to an existing pod is not known: open a sandbox from its image", backend.ErrUnsupported)
	}
	if err := ociimage.CheckFile(file, overwrite); err != nil {
		return "", nil, err
	}
	pod, err := h.backend.cluster.Client.CoreV1().Pods(h.target.Namespace).Get(ctx, h.target.Pod, metav1.GetOptions{})
	if err != nil {
		return "", nil, access.Explain("look at the pod "+h.target.Pod, err)
	}
	about, err := h.describe(pod)
	if err != nil {
		return "", nil, err
	}
	base, err := baseOf(ctx, pod, h.header.Load().arch)
	if err != nil {
		return "", nil, err
	}
	defer base.Close()
	c := &commit{dir: filepath.Dir(file), most: about.Sandbox.Limits.Disk}
	defer c.Close()
	if podspec.WritableRoot(pod) {
		tree, err := base.Tree(ctx)
		if err != nil {
			return "", nil, fmt.Errorf("read the image %s: %w", about.Inside.Image, err)
		}
		if err := h.changes(ctx, c, tree); err != nil {
			return "", nil, fmt.Errorf("read what was written to the root file system: %w", err)
		}
	} else if err := c.empty(); err != nil {
		return "", nil, err
	}
	workdir := about.Inside.Workdir
	c.layer.Deletions, c.layer.Owners, c.layer.UID, c.layer.GID = false, false, codeID, codeID
	if err := c.layer.Add(ctx, files, workdir); err != nil {
		return "", nil, fmt.Errorf("read the working directory: %w", err)
	}
	c.layer.Replace(workdir)
	id, err := base.WriteFile(ctx, file, overwrite != "", c.layer, workdir)
	if err != nil {
		return "", nil, err
	}
	return id.String(), append(c.left, c.layer.Skipped...), nil
}

// A commit is the layer with what was written.
type commit struct {
	dir   string
	most  int64
	layer *ociimage.Layer
	left  []string // out of what the agent sends
}

// Close gives up the layer's contents.
func (c *commit) Close() {
	if c.layer != nil {
		_ = c.layer.Close() // nothing of it is wanted any more
	}
}

// empty begins the layer, or begins it again.
func (c *commit) empty() (err error) {
	c.Close()
	c.layer, err = ociimage.NewLayer(c.dir)
	if err == nil {
		c.layer.MaxBytes = c.most
	}
	return err
}

// changes adds what differs from the image to a layer. The contents of all files are only sent if
// a file differs that cannot have been written to, as its times say.
func (h *host) changes(ctx context.Context, c *commit, tree *ociimage.Tree) error {
	stream, err := h.Connect(ctx)
	if err != nil {
		return err
	}
	agent, err := agentclient.Connect(ctx, stream)
	if err != nil {
		return err
	}
	for _, all := range []bool{false, true} {
		if err = c.empty(); err != nil {
			break
		}
		c.layer.Deletions, c.layer.Owners = true, true
		err = agentclient.Pipe(func(w io.Writer) error {
			result, err := agent.TarRoot(ctx, all, w)
			c.left = result.Skipped
			return err
		}, func(r io.Reader) error {
			return agentclient.Pipe(func(w io.Writer) error { return tree.Changes(ctx, r, w, c.dir, c.most) },
				func(r io.Reader) error { return c.layer.Add(ctx, r, "/") })
		})
		if !errors.Is(err, ociimage.ErrUnsent) {
			break
		}
	}
	return errors.Join(err, agent.Close())
}

// baseOf opens the image that a pod runs, in its registry.
func baseOf(ctx context.Context, pod *corev1.Pod, arch string) (*ociimage.Outside, error) {
	image, id := imageOf(pod, podspec.Container), ""
	for _, s := range pod.Status.ContainerStatuses {
		if s.Name == podspec.Container {
			id = s.ImageID
		}
	}
	names, config := imageNames(image, id)
	var first error
	for _, n := range names {
		base, err := openBase(ctx, n, config, arch)
		if err == nil {
			return base, nil
		}
		first = cmp.Or(first, err)
	}
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	return nil, fmt.Errorf("the layers of image %s (%s on its node) are needed from its registry, with your own docker credentials: %w: push the image to a registry that the cluster and this machine reach, and open the sandbox from there",
		image, id, cmp.Or(first, backend.ErrImageNotFound))
}

func openBase(ctx context.Context, from, config, arch string) (*ociimage.Outside, error) {
	place, err := ociimage.Locate("docker://" + from)
	if err != nil {
		return nil, err
	}
	base, err := place.Open(ctx, ociimage.Options{Platform: "linux/" + arch}, "")
	if err == nil && config != "" && base.ID.String() != config {
		base.Close()
		err = fmt.Errorf("it has another image of that name: %w", backend.ErrImageNotFound)
	}
	return base, err
}

// imageNames are those under which a registry may have the image of a container, which its node calls id. Where a node only knows
// the digest of the image's configuration, since it was imported there, that is config.
func imageNames(image, id string) (names []string, config string) {
	ref, err := name.ParseReference(image)
	if err != nil || id == "" {
		return nil, ""
	}
	if _, rest, ok := strings.Cut(id, "://"); ok { // as some runtimes begin it, such as docker-pullable
		id = rest
	}
	if !strings.Contains(id, "@") {
		return []string{ref.Name()}, "sha256:" + strings.TrimPrefix(id, "sha256:")
	}
	node, err := name.NewDigest(id)
	if err != nil {
		return nil, ""
	}
	return slices.Compact([]string{ref.Context().Digest(node.DigestStr()).Name(), node.Name()}), ""
}
