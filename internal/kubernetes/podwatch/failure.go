package podwatch

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/llmsandbox/llmsandbox/backend"
)

// A StartError says why a pod does not start, as the cluster reports it.
type StartError struct {
	Reason  string // the cluster's: "Unschedulable", "ErrImagePull", ...
	Message string // the cluster's
	Hint    string // what to do about it; may be empty
	kind    error
}

func (e *StartError) Error() string {
	s := "the pod does not start: " + e.Reason
	if e.Message != "" {
		s += ": " + strings.TrimRight(e.Message, ". \n")
	}
	if e.Hint != "" {
		s += ": " + e.Hint
	}
	return s
}

// Unwrap is backend.ErrImageNotFound or the like where the cluster says so.
func (e *StartError) Unwrap() error { return e.kind }

const reasonUnschedulable = corev1.PodReasonUnschedulable

// A verdict is what a reason means.
type verdict struct {
	hint string
	kind error
}

const (
	hintImage  = "check the image's name and, where its registry is private, the pull secrets"
	hintNode   = "ask for less, make room, or set WaitForNode where nodes are added on demand"
	hintConfig = "what the pod template refers to must be there, and must suit a user that is not root"
	hintRun    = "the image must have what the pod's command names"
	hintNodes  = "look at the node's runtime, network and storage"
)

// waiting are the reasons with which a container waits in vain.
var waiting = map[string]verdict{
	"ErrImagePull":               {hintImage, backend.ErrImageNotFound},
	"ImagePullBackOff":           {hintImage, backend.ErrImageNotFound},
	"RegistryUnavailable":        {hintImage, backend.ErrImageNotFound},
	"ErrImageNeverPull":          {"load the image on the node, or let the pull policy fetch it", backend.ErrImageNotFound},
	"InvalidImageName":           {hintImage, backend.ErrImageNotFound},
	"ImageInspectError":          {"the image on the node may be damaged: remove it there", backend.ErrImageInvalid},
	"SignatureValidationFailed":  {"the node takes only signed images", backend.ErrImageInvalid},
	"CreateContainerConfigError": {hintConfig, nil},
	"CreateContainerError":       {hintConfig, nil},
	"PreCreateHookError":         {hintConfig, nil},
	"PreStartHookError":          {hintConfig, nil},
	"PostStartHookError":         {hintConfig, nil},
	"RunContainerError":          {hintRun, nil},
	"CrashLoopBackOff":           {hintRun, nil},
}

// passing are parts of messages of which the node itself will be rid of soon.
var passing = []string{
	"failed to sync configmap cache", "failed to sync secret cache", "is reserved for", "context deadline exceeded",
}

// failure returns why a pod will not start; nil when it may.
func failure(pod *corev1.Pod) *StartError {
	for _, c := range pod.Status.Conditions {
		if c.Type == corev1.PodScheduled && c.Status == corev1.ConditionFalse && c.Reason == reasonUnschedulable {
			return &StartError{Reason: c.Reason, Message: c.Message, Hint: hintNode}
		}
	}
	if pod.Status.Phase == corev1.PodFailed && pod.Status.Reason != "" {
		return &StartError{Reason: pod.Status.Reason, Message: pod.Status.Message}
	}
	for _, s := range pod.Status.InitContainerStatuses {
		if t := s.State.Terminated; t != nil && t.ExitCode != 0 {
			return terminated("init container "+s.Name, t)
		}
		if failed := waits(s); failed != nil {
			return failed
		}
	}
	for _, s := range pod.Status.ContainerStatuses {
		if t := s.State.Terminated; t != nil {
			return terminated("container "+s.Name, t)
		}
		if failed := waits(s); failed != nil {
			return failed
		}
	}
	return nil
}

// waits reports whether a container waits in vain.
func waits(s corev1.ContainerStatus) *StartError {
	if s.State.Waiting == nil {
		return nil
	}
	reason, message := s.State.Waiting.Reason, s.State.Waiting.Message
	v, ok := waiting[reason]
	if !ok || contains(message, passing) {
		return nil
	}
	if last := s.LastTerminationState.Terminated; last != nil && reason == "CrashLoopBackOff" {
		message += ": " + outcome(last)
	}
	return &StartError{Reason: reason, Message: fmt.Sprintf("container %s: %s", s.Name, message), Hint: v.hint, kind: v.kind}
}

// terminated is about a container that ended before its time.
func terminated(who string, t *corev1.ContainerStateTerminated) *StartError {
	failed := &StartError{Reason: t.Reason, Message: who + " " + outcome(t)}
	if failed.Reason == "" {
		failed.Reason = "Terminated"
	}
	if t.Reason == "StartError" || t.Reason == "ContainerCannotRun" {
		failed.Hint = hintRun
	}
	return failed
}

func contains(s string, parts []string) bool {
	for _, p := range parts {
		if strings.Contains(s, p) {
			return true
		}
	}
	return false
}
