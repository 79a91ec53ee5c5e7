package podwatch

import (
	"context"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// startedEvents are those with which a kubelet reports that a container runs, as soon as it
// does. In the pod's status that shows when the kubelet next looks, up to a second later.
const startedEvents = "involvedObject.kind=Pod,reason=Started"

// Hear has Started report what events say, until the function that it returns is called.
// Pods that are heard at the same time share one watch.
func (p *Pod) Hear() (done func()) {
	return p.watcher.use(&p.watcher.starts, p.watcher.reflectStarts)
}

// Started reports whether an event has said that this container runs. It may come before
// the pod's status shows that, or never: without the right to watch events nothing is heard.
func (p *Pod) Started(container string) bool {
	p.watcher.mu.Lock()
	defer p.watcher.mu.Unlock()
	return p.started[container]
}

// start takes what an event reported.
func (p *Pod) start(e *corev1.Event) {
	container := containerOf(e)
	if container == "" || p.uid == "" || p.uid != e.InvolvedObject.UID || p.started[container] {
		return
	}
	if p.started == nil {
		p.started = map[string]bool{}
	}
	p.started[container] = true
	p.wake()
}

// containerOf is the container that an event is about, which it names as
// "spec.initContainers{agent}"; "" for none.
func containerOf(e *corev1.Event) string {
	_, name, ok := strings.Cut(e.InvolvedObject.FieldPath, "{")
	if !ok {
		return ""
	}
	name, ok = strings.CutSuffix(name, "}")
	if !ok {
		return ""
	}
	return name
}

// reflectStarts watches from now on. A failure is ignored: the pods' statuses
// report the same, later.
func (w *Watcher) reflectStarts() *reflection {
	f := newReflection()
	f.run(w.hear)
	return f
}

func (w *Watcher) hear(ctx context.Context) {
	events := w.client.CoreV1().Events(w.namespace)
	// Of the events so far only the version is of use.
	list, err := events.List(ctx, metav1.ListOptions{FieldSelector: startedEvents, Limit: 1})
	if err != nil {
		return
	}
	heard, err := events.Watch(ctx, metav1.ListOptions{FieldSelector: startedEvents, ResourceVersion: list.ResourceVersion})
	if err != nil {
		return
	}
	defer heard.Stop()
	for {
		select {
		case got, ok := <-heard.ResultChan():
			if !ok {
				return
			}
			if e, ok := got.Object.(*corev1.Event); ok {
				w.dispatch(e)
			}
		case <-ctx.Done():
			return
		}
	}
}

func (w *Watcher) dispatch(e *corev1.Event) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for p := range w.followers[e.InvolvedObject.Name] {
		p.start(e)
	}
}

// warnings are the events of what keeps a pod from starting and shows in no status. A node
// tries again, and may well succeed; so what does not name something that is missing must
// have come that often.
var warnings = map[string]int32{
	"FailedCreatePodSandBox":   3,
	"FailedMount":              3,
	"FailedAttachVolume":       3,
	"FailedMapVolume":          3,
	"FailedValidation":         1,
	"NodeAffinity":             1,
	"UnexpectedAdmissionError": 1,
}

// lasting are parts of messages about what does not come by itself.
var lasting = []string{
	"not found", "no runtime for", "RuntimeHandler", "runtime handler", "no such file or directory",
	"is not registered", "not supported", "permission denied", "is forbidden",
}

// failedBy returns the failure that a warning reports of a pod's start; nil for none yet.
func failedBy(e *corev1.Event) *StartError {
	enough, ok := warnings[e.Reason]
	if !ok {
		return nil
	}
	count := max(e.Count, 1)
	if e.Series != nil {
		count = max(count, e.Series.Count)
	}
	if count < enough && (!contains(e.Message, lasting) || contains(e.Message, passing)) {
		return nil
	}
	return &StartError{Reason: e.Reason, Message: e.Message, Hint: hintNodes}
}
