package podwatch

import (
	"cmp"
	"fmt"
	"slices"
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

// unbound is part of the message about a pod whose claim is being given its storage.
const unbound = "unbound immediate PersistentVolumeClaims"

// failure returns why a pod will not start; nil when it may.
func failure(pod *corev1.Pod) *StartError {
	for _, c := range pod.Status.Conditions {
		if c.Type == corev1.PodScheduled && c.Status == corev1.ConditionFalse && c.Reason == reasonUnschedulable && !strings.Contains(c.Message, unbound) {
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
	failed.Reason = cmp.Or(failed.Reason, "Terminated")
	if t.Reason == "StartError" || t.Reason == "ContainerCannotRun" {
		failed.Hint = hintRun
	}
	return failed
}

func contains(s string, parts []string) bool {
	return slices.ContainsFunc(parts, func(p string) bool { return strings.Contains(s, p) })
}

// reasonOOM is how kubelets mark a container of which the kernel killed something for
// memory. Runtimes remember that until the container ends, so the exit code must show
// whether it ended of it: as killed, or, in gVisor, with its own code.
const reasonOOM = "OOMKilled"

const (
	codeKilled = 137
	codeGVisor = 128
)

func killedForMemory(t *corev1.ContainerStateTerminated) bool {
	return t != nil && t.Reason == reasonOOM && (t.ExitCode == codeKilled || t.ExitCode == codeGVisor)
}

func oomKilled(pod *corev1.Pod, container string) bool {
	s := status(pod, container)
	return s != nil && (killedForMemory(s.State.Terminated) || killedForMemory(s.LastTerminationState.Terminated))
}

// status is that of a container; nil when there is none yet.
func status(pod *corev1.Pod, container string) *corev1.ContainerStatus {
	for i := range pod.Status.ContainerStatuses {
		if pod.Status.ContainerStatuses[i].Name == container {
			return &pod.Status.ContainerStatuses[i]
		}
	}
	return nil
}

func restarts(pod *corev1.Pod, container string) int32 {
	if s := status(pod, container); s != nil {
		return s.RestartCount
	}
	return 0
}

// ended returns why a pod counts as ended; "" when it does not. before is how often its
// container had been restarted when we came.
func ended(pod *corev1.Pod, container string, before int32) string {
	s := status(pod, container)
	over := pod.Status.Phase == corev1.PodFailed || pod.Status.Phase == corev1.PodSucceeded
	switch {
	case over && pod.Status.Reason != "":
		return "the cluster ended the pod: " + join(pod.Status.Reason, pod.Status.Message)
	case s != nil && s.State.Terminated != nil:
		if pod.DeletionTimestamp != nil && !killedForMemory(s.State.Terminated) {
			return deleted(pod)
		}
		return "the container " + outcome(wordless(s.State.Terminated))
	case s != nil && s.RestartCount > before:
		if last := s.LastTerminationState.Terminated; last != nil {
			return "the container " + outcome(wordless(last)) + ", and was started anew"
		}
		return "the container was started anew"
	case !over:
		return ""
	}
	for _, i := range pod.Status.InitContainerStatuses {
		if t := i.State.Terminated; t != nil && t.ExitCode != 0 {
			return "the init container " + i.Name + " " + outcome(t)
		}
	}
	return "the pod has ended: " + string(pod.Status.Phase)
}

// wordless leaves out the last message of a container that was started: code that is root can write it.
func wordless(t *corev1.ContainerStateTerminated) *corev1.ContainerStateTerminated {
	if t.Reason == "StartError" || t.Reason == "ContainerCannotRun" {
		return t
	}
	t = t.DeepCopy()
	t.Message = ""
	return t
}

// outcome describes how a container ended.
func outcome(t *corev1.ContainerStateTerminated) string {
	switch {
	case killedForMemory(t):
		return "was killed for memory (OOMKilled)"
	case t.Reason == "StartError", t.Reason == "ContainerCannotRun":
		return "could not be started: " + join(t.Reason, t.Message)
	case t.Reason == "", t.Reason == "Error", t.Reason == "Completed", t.Reason == reasonOOM:
		return join(fmt.Sprintf("ended with exit code %d", t.ExitCode), t.Message)
	}
	return join(fmt.Sprintf("ended with exit code %d (%s)", t.ExitCode, t.Reason), t.Message)
}

// deleted says why a pod was removed, where that is known.
func deleted(pod *corev1.Pod) string {
	for _, c := range pod.Status.Conditions {
		if c.Type == corev1.DisruptionTarget && c.Status == corev1.ConditionTrue {
			return "the pod was deleted: " + join(c.Reason, c.Message)
		}
	}
	return "the pod was deleted"
}

// obstacle returns why a pod that has not ended cannot be reached.
func obstacle(pod *corev1.Pod, container string) string {
	s := status(pod, container)
	runs := s != nil && s.State.Running != nil
	for _, c := range pod.Status.Conditions {
		switch {
		case c.Type == corev1.DisruptionTarget && c.Status == corev1.ConditionTrue:
			return "the cluster is about to end the pod: " + join(c.Reason, c.Message)
		// The node says that the container is ready, and the cluster that the pod is not.
		case c.Type == corev1.PodReady && c.Status != corev1.ConditionTrue && runs && s.Ready:
			return fmt.Sprintf("node %s does not answer", pod.Spec.NodeName)
		}
	}
	switch {
	case pod.Status.Reason != "": // NodeLost
		return "the cluster says of the pod: " + join(pod.Status.Reason, pod.Status.Message)
	case pod.DeletionTimestamp != nil:
		return "the pod is being deleted"
	}
	return ""
}

// describe says how far a pod has come.
func describe(pod *corev1.Pod) string {
	at := strings.ToLower(string(pod.Status.Phase))
	for _, c := range pod.Status.Conditions {
		if c.Type == corev1.PodScheduled && c.Status == corev1.ConditionFalse {
			return at + ": " + join(c.Reason, c.Message)
		}
	}
	for _, s := range append(append([]corev1.ContainerStatus(nil), pod.Status.InitContainerStatuses...), pod.Status.ContainerStatuses...) {
		if w := s.State.Waiting; w != nil {
			return at + ", container " + s.Name + " waits: " + join(w.Reason, w.Message)
		}
	}
	return at
}

func join(a, b string) string {
	if b = strings.TrimSpace(b); b == "" {
		return a
	}
	return a + ": " + b
}
