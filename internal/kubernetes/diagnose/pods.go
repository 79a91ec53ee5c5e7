package diagnose

import (
	"context"
	"crypto/rand"
	_ "embed"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	typed "k8s.io/client-go/kubernetes/typed/core/v1"

	"github.com/llmsandbox/llmsandbox/internal/defaultimage"
	"github.com/llmsandbox/llmsandbox/internal/kubernetes/access"
	"github.com/llmsandbox/llmsandbox/internal/kubernetes/podspec"
)

//go:embed probe/probe.py
var python string

//go:embed probe/probe.pl
var perl string

// Labels of a probe's pods.
const (
	labelProbe = "llmsandbox.dev/probe" // the probe's id
	labelPart  = "llmsandbox.dev/part"  // which of its pods
)

const (
	port          = 8080
	periodMillis  = 1000
	patientMillis = 15_000
	nobody        = 65534
	// exitNoProgram is how start ends where the image has nothing to run a probe with.
	exitNoProgram = 97
	// exitNoShell is what the kubelet says of a program that could not be started.
	exitNoShell = 128
	result      = "/dev/termination-log"
)

// start runs what the image has. Its arguments are the two programs, and theirs.
const start = `py=$1 pl=$2; shift 2
if command -v python3 >/dev/null 2>&1; then exec python3 -c "$py" "$@"; fi
if command -v perl >/dev/null 2>&1; then exec perl -e "$pl" -- "$@"; fi
exit 97`

// command runs the program of a probe. It is said to the cluster, which would put
// variables into it.
func command(script string, args ...string) []string {
	all := append([]string{"sh", "-c", script, "sh", python, perl}, args...)
	for i := range all {
		all[i] = strings.ReplaceAll(all[i], "$", "$$")
	}
	return all
}

func (s *session) image() string {
	if s.probe.Image != "" {
		return s.probe.Image
	}
	d, _ := defaultimage.For("python")
	return d.Name
}

// pod is the pod of a part. It holds to Pod Security "restricted".
func (s *session) pod(part string) *corev1.Pod {
	probe := map[string]string{labelProbe: s.id}
	p := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Name: s.name(part),
			Labels: map[string]string{
				podspec.LabelManagedBy: podspec.ManagedBy, podspec.LabelName: "llmsandbox-probe", podspec.LabelRole: podspec.RoleProbe,
				labelPart: part,
			},
		},
		Spec: corev1.PodSpec{
			RestartPolicy:                 corev1.RestartPolicyNever,
			ActiveDeadlineSeconds:         new(int64(podspec.ProbeLifetime / time.Second)),
			TerminationGracePeriodSeconds: new(int64(0)),
			AutomountServiceAccountToken:  new(false),
			EnableServiceLinks:            new(false),
			NodeSelector:                  maps.Clone(s.probe.NodeSelector),
			Tolerations:                   s.probe.Tolerations,
			// On one node, so the pods differ only by the label.
			Affinity: &corev1.Affinity{PodAffinity: &corev1.PodAffinity{RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{{
				LabelSelector: &metav1.LabelSelector{MatchLabels: probe}, TopologyKey: corev1.LabelHostname,
			}}}},
			SecurityContext: &corev1.PodSecurityContext{
				RunAsNonRoot: new(true), RunAsUser: new(int64(nobody)), RunAsGroup: new(int64(nobody)),
				SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault},
			},
			Containers: []corev1.Container{s.container(part)},
		},
	}
	maps.Copy(p.Labels, probe)
	if part == closedServer || part == closedCaller {
		p.Labels[podspec.LabelNetwork] = podspec.NetworkIsolated
	}
	if s.probe.RuntimeClass != "" {
		p.Spec.RuntimeClassName = new(s.probe.RuntimeClass)
	}
	for _, name := range s.probe.PullSecrets {
		p.Spec.ImagePullSecrets = append(p.Spec.ImagePullSecrets, corev1.LocalObjectReference{Name: name})
	}
	return p
}

func (s *session) container(part string) corev1.Container {
	c := corev1.Container{
		Name: "probe", Image: s.image(), ImagePullPolicy: s.probe.PullPolicy,
		TerminationMessagePath: result,
		SecurityContext: &corev1.SecurityContext{
			Privileged: new(false), AllowPrivilegeEscalation: new(false), ReadOnlyRootFilesystem: new(true),
			Capabilities: &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}},
		},
		Resources: corev1.ResourceRequirements{
			Requests: corev1.ResourceList{
				corev1.ResourceCPU: resource.MustParse("10m"), corev1.ResourceMemory: resource.MustParse("32Mi"), corev1.ResourceEphemeralStorage: resource.MustParse("16Mi"),
			},
			Limits: corev1.ResourceList{
				corev1.ResourceCPU: resource.MustParse("500m"), corev1.ResourceMemory: resource.MustParse("128Mi"), corev1.ResourceEphemeralStorage: resource.MustParse("16Mi"),
			},
		},
	}
	address := []string{s.id, strconv.Itoa(port)}
	if part == openServer || part == closedServer {
		c.Command = command(start, append([]string{"serve"}, address...)...)
		c.ReadinessProbe = &corev1.Probe{
			ProbeHandler:  corev1.ProbeHandler{Exec: &corev1.ExecAction{Command: command(start, append([]string{"ready"}, address...)...)}},
			PeriodSeconds: 1, TimeoutSeconds: 5, FailureThreshold: 100,
		}
		return c
	}
	s.steps[part] = s.questions(part)
	args := append([]string{"call"}, address...)
	args = append(args, strconv.Itoa(periodMillis), strconv.Itoa(patientMillis))
	c.Command = command("exec >"+result+"\n"+start, append(args, s.steps[part]...)...)
	return c
}

// questions are the steps of a caller, over every address that the servers have.
func (s *session) questions(part string) []string {
	steps := func(kind, server string) (all []string) {
		for _, ip := range s.pods[server].Status.PodIPs {
			all = append(all, kind+"="+ip.IP)
		}
		return all
	}
	if part == closedCaller {
		return steps("cut", openServer)
	}
	all := append(steps("must", openServer), steps("cut", closedServer)...)
	return append(all, steps("must", openServer)...)
}

// requestTimeout bounds what is done after the caller has left: making a pod whose outcome
// must be known, and removing one.
const requestTimeout = 15 * time.Second

// The parts of a probe. Those that are closed have the label that the policy selects.
const (
	openServer   = "open-server"
	closedServer = "closed-server"
	openCaller   = "open-caller"
	closedCaller = "closed-caller"
)

// A session is one probe.
type session struct {
	cluster *access.Cluster
	probe   Probe
	id      string
	api     typed.PodInterface
	watcher watch.Interface
	made    []string               // parts whose pods may be there
	steps   map[string][]string    // of the callers
	pods    map[string]*corev1.Pod // as last seen
}

func newSession(c *access.Cluster, p Probe) *session {
	return &session{
		cluster: c, probe: p, id: strings.ToLower(rand.Text())[:10], api: c.Client.CoreV1().Pods(c.Namespace),
		steps: map[string][]string{}, pods: map[string]*corev1.Pod{},
	}
}

func (s *session) name(part string) string { return "llmsandbox-probe-" + s.id + "-" + part }

// create makes the pods of parts. A request that is under way when ctx ends is waited for:
// what has become of it must be known to remove the pod.
func (s *session) create(ctx context.Context, parts ...string) error {
	for _, part := range parts {
		if err := ctx.Err(); err != nil {
			return err
		}
		s.made = append(s.made, part)
		call, cancel := context.WithTimeout(context.WithoutCancel(ctx), requestTimeout)
		_, err := s.api.Create(call, s.pod(part), metav1.CreateOptions{})
		cancel()
		if err != nil {
			return access.Explain("create a pod of the probe", err)
		}
	}
	return nil
}

// remove removes the pods, and returns those that it could not remove.
func (s *session) remove(ctx context.Context) (left []string) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), requestTimeout)
	defer cancel()
	for _, part := range s.made {
		err := s.api.Delete(ctx, s.name(part), metav1.DeleteOptions{GracePeriodSeconds: new(int64(0))})
		if err != nil && !apierrors.IsNotFound(err) {
			left = append(left, access.Explain(s.name(part), err).Error())
		}
	}
	return left
}

// found reads what a caller has found out.
func (s *session) found(part string) ([]step, error) {
	said, code := s.pods[part].Status.Message, int32(-1)
	for _, c := range s.pods[part].Status.ContainerStatuses {
		if t := c.State.Terminated; t != nil {
			said, code = t.Message, t.ExitCode
		}
	}
	switch code {
	case exitNoShell:
		return nil, &access.Error{Why: fmt.Sprintf("the image %s cannot run the probe: %s", s.image(), said), Fix: "name another image for the probe, with sh and python3 or perl"}
	case exitNoProgram:
		return nil, &access.Error{Why: fmt.Sprintf("the image %s has neither python3 nor perl, which the probe runs", s.image()), Fix: "name another image for the probe"}
	}
	steps, err := parse(said, s.steps[part])
	if err != nil {
		return nil, &access.Error{Why: fmt.Sprintf("a pod of the probe ended with exit code %d and without a result: %v", code, err), Fix: "name another image for the probe, one of Debian with python3 or perl", Cause: err}
	}
	return steps, nil
}

// state says of each pod what it waits for.
func (s *session) state() string {
	var parts []string
	for _, part := range s.made {
		words := "not seen yet"
		if pod := s.pods[part]; pod != nil {
			words = string(pod.Status.Phase)
			if why := waiting(pod); why != "" {
				words += ": " + why
			}
		}
		parts = append(parts, part+" "+words)
	}
	return strings.Join(parts, "; ")
}

// watch starts to follow the pods, before there are any.
func (s *session) watch(ctx context.Context) (err error) {
	s.watcher, err = s.api.Watch(ctx, metav1.ListOptions{LabelSelector: labelProbe + "=" + s.id})
	return access.Explain("watch the pods of the probe", err)
}

// wait follows the pods until until holds for each of parts, or one of them cannot start.
func (s *session) wait(ctx context.Context, until func(*corev1.Pod) bool, parts ...string) error {
	for {
		if !slices.ContainsFunc(parts, func(p string) bool { return s.pods[p] == nil || !until(s.pods[p]) }) {
			return nil
		}
		for _, part := range s.made {
			if err := s.stuck(part); err != nil {
				return err
			}
		}
		select {
		case event, ok := <-s.watcher.ResultChan():
			if !ok {
				if err := ctx.Err(); err != nil {
					return err
				}
				return &access.Error{Why: "the API server ended the watch of the probe's pods", Fix: "try again"}
			}
			if err := s.see(event); err != nil {
				return err
			}
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// see takes in what has happened to a pod.
func (s *session) see(event watch.Event) error {
	if event.Type == watch.Error {
		return access.Explain("watch the pods of the probe", apierrors.FromObject(event.Object))
	}
	pod, ok := event.Object.(*corev1.Pod)
	if !ok {
		return nil // a bookmark of something else
	}
	if event.Type == watch.Deleted {
		return &access.Error{Why: fmt.Sprintf("the pod %s of the probe was removed while it ran", pod.Name), Fix: "try again"}
	}
	s.pods[pod.Labels[labelPart]] = pod
	return nil
}

func ready(pod *corev1.Pod) bool {
	return len(pod.Status.PodIPs) > 0 && slices.ContainsFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue
	})
}

// done reports that a pod's container has ended, as a caller's does.
func done(pod *corev1.Pod) bool {
	return pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed
}

// hopeless are reasons for which a container waits that do not go away by themselves.
var hopeless = []string{
	"ErrImagePull", "ImagePullBackOff", "ErrImageNeverPull", "InvalidImageName", "ImageInspectError",
	"CreateContainerConfigError", "CreateContainerError", "RunContainerError",
}

// stuck returns why the pod of a part does not get on, when that is known.
func (s *session) stuck(part string) error {
	pod := s.pods[part]
	if pod == nil || pod.Status.Phase == corev1.PodSucceeded {
		return nil
	}
	for _, c := range pod.Status.Conditions {
		if c.Type == corev1.PodScheduled && c.Status == corev1.ConditionFalse && c.Reason == corev1.PodReasonUnschedulable {
			return &access.Error{Why: "no node takes the pods of the probe: " + c.Message, Fix: "make room for four small pods on one node, or give the probe the sandboxes' node selector and tolerations"}
		}
	}
	for _, c := range pod.Status.ContainerStatuses {
		if w := c.State.Waiting; w != nil && slices.Contains(hopeless, w.Reason) {
			return &access.Error{Why: fmt.Sprintf("a pod of the probe does not start: %s: %s", w.Reason, w.Message), Fix: fmt.Sprintf("name an image for the probe that the nodes have or can pull, in place of %s", s.image())}
		}
	}
	if done(pod) && s.steps[part] == nil {
		_, err := s.found(part)
		return err
	}
	return nil
}

// waiting is what a pod waits for, as the cluster reports it.
func waiting(pod *corev1.Pod) string {
	for _, c := range pod.Status.ContainerStatuses {
		if w := c.State.Waiting; w != nil {
			return w.Reason
		}
	}
	for _, c := range pod.Status.Conditions {
		if c.Status == corev1.ConditionFalse && c.Reason != "" {
			return c.Reason
		}
	}
	return ""
}
