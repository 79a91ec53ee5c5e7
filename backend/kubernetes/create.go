package kubernetes

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/llmsandbox/llmsandbox/backend"
	"github.com/llmsandbox/llmsandbox/internal/agentclient"
	"github.com/llmsandbox/llmsandbox/internal/agenthost"
	"github.com/llmsandbox/llmsandbox/internal/agentproto"
	"github.com/llmsandbox/llmsandbox/internal/kubernetes/podspec"
)

// Where things are inside.
const (
	workdir   = podspec.Workdir
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
	ctx, cancel := context.WithTimeoutCause(ctx, b.options.StartTimeout,
		fmt.Errorf("the sandbox has not started within %v, see Options.StartTimeout: %w", b.options.StartTimeout, context.DeadlineExceeded))
	defer cancel()
	if b.options.Pod != "" {
		return b.enter(ctx, spec)
	}
	unhold, err := b.holdLayers(spec.Layers)
	if err != nil {
		return nil, err
	}
	pod, err := b.prepare(ctx, spec)
	if err != nil {
		return nil, errors.Join(err, unhold())
	}
	h := &host{backend: b, unhold: unhold}
	s := agenthost.New(agenthost.Owner, h, agenthost.Description{})
	if err := h.start(ctx, s, spec, pod); err != nil {
		return nil, errors.Join(err, s.Close(nil)) // nothing is left behind
	}
	return s, nil
}

// prepare decides on the pod, and makes sure of what it needs: the policy that cuts it off,
// and an owner, which is to be left.
func (b *Backend) prepare(ctx context.Context, spec backend.Spec) (*corev1.Pod, error) {
	pod, err := b.plan(spec)
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

// plan decides what the pod is, without asking anybody.
func (b *Backend) plan(spec backend.Spec) (*corev1.Pod, error) {
	o := b.options
	image, err := o.image(spec)
	if err != nil {
		return nil, err
	}
	annotations, err := encode(agenthost.Record(spec, Name, image, ownerText()), asked(spec, image))
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
		UID: podspec.NewUID(), LayerBytes: size, Template: o.Template,
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
		Grace: b.grace(), FirstGrace: max(maxGrace, b.options.TTL), Workdir: workdir, Filter: podspec.Filter, LayerPath: podspec.LayerPath,
	})
	if spec.Limits.PIDs > 0 {
		// There is no such limit of a pod. The user is this sandbox's alone.
		args = append(args, "--rlimit", "nproc="+strconv.FormatInt(spec.Limits.PIDs+agentproto.SpareThreads, 10))
	}
	return args
}
