package diagnose

import (
	"context"
	"crypto/rand"
	_ "embed"
	"errors"
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
	typed "k8s.io/client-go/kubernetes/typed/core/v1"

	"github.com/llmsandbox/llmsandbox/backend"
	"github.com/llmsandbox/llmsandbox/internal/defaultimage"
	"github.com/llmsandbox/llmsandbox/internal/kubernetes/access"
	"github.com/llmsandbox/llmsandbox/internal/kubernetes/podspec"
	"github.com/llmsandbox/llmsandbox/internal/kubernetes/podwatch"
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
	// container is the pods' only one.
	container = "probe"
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
		Name: container, Image: s.image(), ImagePullPolicy: s.probe.PullPolicy,
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
	watcher *podwatch.Watcher
	made    []string               // parts whose pods may be there
	steps   map[string][]string    // of the callers
	pods    map[string]*corev1.Pod // as last seen
}

func newSession(c *access.Cluster, p Probe) *session {
	id := strings.ToLower(rand.Text())[:10]
	return &session{
		cluster: c, probe: p, id: id, api: c.Client.CoreV1().Pods(c.Namespace),
		watcher: podwatch.New(c.Client, c.Namespace, labelProbe+"="+id, container),
		steps:   map[string][]string{}, pods: map[string]*corev1.Pod{},
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

// wait follows the pods of parts until until holds for each of them, or one cannot start.
func (s *session) wait(ctx context.Context, until func(*corev1.Pod) bool, parts ...string) error {
	for _, part := range parts {
		followed, err := s.watcher.Follow(s.name(part))
		if err != nil {
			return err
		}
		defer followed.Stop()
		_, err = followed.Wait(ctx, func(pod *corev1.Pod) (bool, error) {
			s.pods[part] = pod
			if done(pod) && s.steps[part] == nil { // a server
				_, err := s.found(part)
				return false, err
			}
			return until(pod), nil
		})
		if err != nil {
			return s.explain(err)
		}
	}
	return nil
}

// explain says what to do about the end of a wait.
func (s *session) explain(err error) error {
	failed, ok := errors.AsType[*podwatch.StartError](err)
	switch {
	case !ok:
		return access.Explain("wait for the pods of the probe", err)
	case failed.Reason == corev1.PodReasonUnschedulable:
		return &access.Error{Why: "no node takes the pods of the probe: " + failed.Message, Fix: "make room for four small pods on one node, or give the probe the sandboxes' node selector and tolerations", Cause: err}
	case errors.Is(err, backend.ErrImageNotFound):
		return &access.Error{Why: "a pod of the probe does not start: " + failed.Reason + ": " + failed.Message, Fix: fmt.Sprintf("name an image for the probe that the nodes have or can pull, in place of %s", s.image()), Cause: err}
	}
	return &access.Error{Why: "a pod of the probe: " + failed.Error(), Fix: "try again; kubectl describe pods says more while it runs", Cause: err}
}

func ready(pod *corev1.Pod) bool {
	return len(pod.Status.PodIPs) > 0 && slices.ContainsFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue
	})
}

// done reports that a pod's container has ended, as a caller's does. Its status may show that
// before the pod's phase does.
func done(pod *corev1.Pod) bool {
	return pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed ||
		slices.ContainsFunc(pod.Status.ContainerStatuses, func(c corev1.ContainerStatus) bool { return c.State.Terminated != nil })
}
