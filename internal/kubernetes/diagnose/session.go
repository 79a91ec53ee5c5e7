package diagnose

import (
	"context"
	"crypto/rand"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	typed "k8s.io/client-go/kubernetes/typed/core/v1"

	"github.com/llmsandbox/llmsandbox/internal/kubernetes/access"
)

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
