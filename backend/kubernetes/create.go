package kubernetes

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/distribution/reference"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	typed "k8s.io/client-go/kubernetes/typed/core/v1"

	"github.com/llmsandbox/llmsandbox/backend"
	"github.com/llmsandbox/llmsandbox/internal/agentclient"
	"github.com/llmsandbox/llmsandbox/internal/agenthost"
	"github.com/llmsandbox/llmsandbox/internal/agentproto"
	"github.com/llmsandbox/llmsandbox/internal/defaultimage"
	"github.com/llmsandbox/llmsandbox/internal/hostmount"
	"github.com/llmsandbox/llmsandbox/internal/kubernetes/access"
	"github.com/llmsandbox/llmsandbox/internal/kubernetes/isolation"
	"github.com/llmsandbox/llmsandbox/internal/kubernetes/podspec"
	"github.com/llmsandbox/llmsandbox/internal/language"
	"github.com/llmsandbox/llmsandbox/internal/ociimage"
)

// Where things are inside.
const (
	tempDir   = podspec.TempDir
	agentFile = podspec.AgentFile
	envToken  = agenthost.EnvToken
)

// maxGrace is how long an agent waits for its owner, whose stream was lost, to come back:
// as long as an API server may take that is started anew. The owner's TTL holds besides.
const maxGrace = time.Minute

// grace is shorter than the least time that is left after a heartbeat. An agent without a
// connection ends by itself first, and a client that searches that long finds its pod.
func (b *Backend) grace() time.Duration { return min(maxGrace, b.options.TTL/2) }

// Create makes a pod with the agent as its main process, or brings the agent into
// Options.Pod.
func (b *Backend) Create(ctx context.Context, spec backend.Spec) (backend.Machine, error) {
	ctx, cancel := b.withStartTimeout(ctx)
	defer cancel()
	if b.options.Pod != "" {
		return b.enter(ctx, spec)
	}
	if err := hostmount.Unsupported(spec.Mounts, "a node of the cluster does not have this machine's files"); err != nil {
		return nil, err
	}
	return b.create(ctx, spec, nil)
}

func (b *Backend) withStartTimeout(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeoutCause(ctx, b.options.StartTimeout,
		fmt.Errorf("the sandbox has not started within %v, see Options.StartTimeout: %w", b.options.StartTimeout, context.DeadlineExceeded))
}

// create makes a pod, in the place of another if again is not nil. That goes only when the new one is owned and its layers are
// held, so that the cluster does not take them for unused meanwhile.
func (b *Backend) create(ctx context.Context, spec backend.Spec, again *renewal) (backend.Machine, error) {
	unhold, err := b.holdLayers(spec.Layers)
	if err != nil {
		return nil, err
	}
	pod, err := b.prepare(ctx, spec)
	if err != nil {
		return nil, errors.Join(err, unhold())
	}
	h := &host{backend: b, unhold: unhold, spec: spec}
	s := agenthost.New(agenthost.Owner, h, agenthost.Description{})
	if again != nil {
		err = again.replace(ctx, pod)
	}
	if err == nil {
		err = h.start(ctx, s, spec, pod)
	}
	if err == nil && again != nil {
		if pod, err = h.pod.Wait(ctx, started); err == nil {
			err = sameImage(pod, again.was)
		}
	}
	if err != nil {
		return nil, errors.Join(err, s.Close(nil)) // nothing is left behind
	}
	return s, nil
}

// prepare decides on the pod, and makes sure of what it needs: the policy that cuts it off,
// and an owner, which is to be left.
func (b *Backend) prepare(ctx context.Context, spec backend.Spec) (*corev1.Pod, error) {
	uid, err := b.userOf(ctx, spec.Volumes)
	if err != nil {
		return nil, err
	}
	pod, err := b.plan(spec, uid)
	if err != nil {
		return nil, err
	}
	if err := b.isolate(ctx); err != nil {
		return nil, err
	}
	ref, err := b.owner.enter(ctx)
	if err != nil {
		return nil, err
	}
	if ref != nil {
		pod.OwnerReferences = []metav1.OwnerReference{*ref}
	}
	return pod, nil
}

// GPUs implements [backend.GPUs].
func (b *Backend) GPUs() {}

// OwnRoots implements [backend.OwnRoots].
func (b *Backend) OwnRoots() {}

// plan decides what the pod is, without asking anybody. Code is the user uid, unless it is to be another.
func (b *Backend) plan(spec backend.Spec, uid int64) (*corev1.Pod, error) {
	o := b.options
	image, err := o.image(spec)
	if err != nil {
		return nil, err
	}
	info := agenthost.Record(spec, Name, image, ownerText())
	info.Volumes = spec.Volumes
	annotations, err := encode(info, asked(spec, image))
	if err != nil {
		return nil, err
	}
	size, err := layersSize(spec.Layers)
	if err != nil {
		return nil, err
	}
	pod, err := podspec.Build(podspec.Request{
		Spec: spec, Image: image, PullPolicy: o.PullPolicy, PullSecrets: o.PullSecrets, AgentImage: o.AgentImage,
		Args: b.serveArgs(spec), Token: agentclient.NewToken(), Owner: b.owner.id, Annotations: annotations,
		RuntimeClass: o.RuntimeClass, ServiceAccount: o.ServiceAccount, NodeSelector: o.NodeSelector,
		UID: uid, LayerBytes: size, Template: o.Template,
	})
	if err != nil {
		return nil, err
	}
	return pod, agenthost.CheckLimits(spec, b.controls(pod, spec.Limits).Controls)
}

// serveArgs are the arguments of an agent that is the main process, after "serve". On a
// busy node its first stream takes its time; the owner's TTL holds nevertheless.
func (b *Backend) serveArgs(spec backend.Spec) []string {
	args := agenthost.ServeArgs(spec, agenthost.Serve{
		Grace: b.grace(), FirstGrace: max(maxGrace, b.options.TTL), Workdir: podspec.WorkdirOf(spec), Filter: podspec.Filter, LayerPath: podspec.LayerPath,
	})
	if spec.Limits.PIDs > 0 {
		// There is no such limit of a pod. The user is this sandbox's alone.
		args = append(args, "--rlimit", "nproc="+strconv.FormatInt(spec.Limits.PIDs+agentproto.SpareThreads, 10))
	}
	return args
}

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
		return "", fmt.Errorf("image %s: it is no directory or file here, and no valid reference (%w): %w", name, err, backend.ErrImageNotFound)
	}
	return name, nil
}

func (o Options) defaultImage(lang string) (string, error) {
	if name := cmp.Or(o.Images[lang], o.Images[language.Family(lang)]); name != "" {
		return name, nil
	}
	d, ok := defaultimage.For(lang)
	if !ok {
		return "", fmt.Errorf("language %q has no default image here: name one: %w", lang, backend.ErrImageNotFound)
	}
	return d.Name, nil
}

// isolate makes sure that the namespace has the policy that cuts sandboxes off. It is
// looked at once by each Backend.
func (b *Backend) isolate(ctx context.Context) error {
	if err := b.isolating.Lock(ctx); err != nil {
		return err
	}
	defer b.isolating.Unlock()
	if b.isolated.Load() != nil {
		return nil
	}
	policy, err := isolation.Ensure(ctx, b.cluster.Client.NetworkingV1(), b.cluster.Namespace)
	if err == nil {
		b.isolated.Store(policy)
	}
	return err
}

// policies returns what is known of the cluster's network for a pod: by the caller, or by
// what doctor has kept at the policy when that was looked at.
func (b *Backend) policies(pod *corev1.Pod) podspec.Policies {
	if b.options.NetworkPolicyEnforced {
		return podspec.Policies{Enforced: true}
	}
	policy := b.isolated.Load()
	if policy == nil {
		return podspec.Policies{}
	}
	class := ""
	if pod.Spec.RuntimeClassName != nil {
		class = *pod.Spec.RuntimeClassName
	}
	v, known := isolation.Known(policy, class, pod.Spec.NodeSelector, time.Now())
	if !known {
		return podspec.Policies{}
	}
	return podspec.Policies{Enforced: v.Enforced, Seen: v.String()}
}

// lookAtPolicy sees the policy where no sandbox was made yet. It makes nothing.
func (b *Backend) lookAtPolicy(ctx context.Context) error {
	if b.options.NetworkPolicyEnforced || b.isolated.Load() != nil {
		return nil
	}
	policy, err := b.cluster.Client.NetworkingV1().NetworkPolicies(b.cluster.Namespace).Get(ctx, isolation.Name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err): // the first sandbox makes it
		return nil
	case err != nil:
		return access.Explain(fmt.Sprintf("look at the NetworkPolicy %s", isolation.Name), err)
	case isolation.Holds(policy): // else the next sandbox repairs it
		b.isolated.CompareAndSwap(nil, policy)
	}
	return nil
}

// A PodSource is where the pods of sandboxes come from. The default creates each when it
// is asked for; another one may hand out pods that were made ahead, such as those that a
// controller for sandboxes keeps warm.
type PodSource interface {
	// Obtain returns a pod for the one that is asked for, once. It has the labels,
	// annotations and owner of that, whatever its name, and its agent is that of a pod
	// that this package made: the token and the socket are read from the container's own
	// environment and command. It need not run yet. The caller deletes it. On an error,
	// and when ctx has ended, nothing of it is left.
	Obtain(ctx context.Context, pod *corev1.Pod) (*corev1.Pod, error)
}

// createTimeout bounds the making of an object, which nothing interrupts.
const createTimeout = 30 * time.Second

// creator makes the pod that is asked for.
type creator struct {
	pods typed.PodInterface
}

// Obtain creates the pod. The cluster may carry out a call that was cancelled, so the call
// is waited for, and a pod that comes too late is deleted.
func (c creator) Obtain(ctx context.Context, pod *corev1.Pod) (*corev1.Pod, error) {
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	call, cancel := context.WithTimeout(context.WithoutCancel(ctx), createTimeout)
	defer cancel()
	made, err := c.pods.Create(call, pod, metav1.CreateOptions{})
	switch {
	case apierrors.IsAlreadyExists(err):
		return nil, fmt.Errorf("pod %s: %w: another sandbox has that id", pod.Name, backend.ErrLocked)
	case err != nil:
		err = access.Explain("create the pod "+pod.Name, err)
		if inDoubt(err) {
			err = errors.Join(err, c.discard(context.WithoutCancel(ctx), pod))
		}
		return nil, err
	case ctx.Err() != nil:
		return nil, errors.Join(context.Cause(ctx), deletePod(context.WithoutCancel(ctx), c.pods, made.Name, made.UID, deletePatience, 0))
	}
	return made, nil
}

// discard removes a pod of which it is not known whether it was made.
func (c creator) discard(ctx context.Context, pod *corev1.Pod) error {
	ctx, cancel := context.WithTimeout(ctx, createTimeout)
	defer cancel()
	made, err := c.pods.Get(ctx, pod.Name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) || err == nil && made.Labels[podspec.LabelOwner] != pod.Labels[podspec.LabelOwner] {
		return nil
	}
	if err != nil {
		return access.Explain("find out whether the pod "+pod.Name+" was made nevertheless", err)
	}
	return deletePod(ctx, c.pods, made.Name, made.UID, deletePatience, 0)
}

// inDoubt reports whether a request that failed may have been carried out: no answer came, or
// one that the server itself waited too long.
func inDoubt(err error) bool {
	var status apierrors.APIStatus
	if errors.As(err, &status) {
		return apierrors.IsTimeout(err) || apierrors.IsServerTimeout(err)
	}
	return !utilnet.IsConnectionRefused(err)
}
