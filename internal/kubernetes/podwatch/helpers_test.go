package podwatch

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const namespace = "sandboxes"

// A record is what a real cluster (1.34) said of a pod, in testdata.
type record struct {
	Pod   *corev1.Pod
	Event *corev1.Event
}

func load(t *testing.T, name string) record {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", name+".json"))
	if err != nil {
		t.Fatal(err)
	}
	var r record
	if err := json.Unmarshal(text, &r); err != nil {
		t.Fatal(err)
	}
	r.Pod.Namespace = namespace
	if r.Event != nil {
		r.Event.Namespace, r.Event.Name = namespace, name
		r.Event.InvolvedObject.UID = r.Pod.UID
	}
	return r
}

// pod is a pod in a state that testdata has.
func pod(t *testing.T, state, name string, uid types.UID, version int) *corev1.Pod {
	t.Helper()
	p := load(t, state).Pod
	p.Name, p.UID, p.ResourceVersion = name, uid, strconv.Itoa(version)
	p.Labels = map[string]string{"app": "sandbox"}
	return p
}

// A cluster is client-go's fake; pods get their resource versions from the test.
type cluster struct {
	*fake.Clientset
	t        *testing.T
	watching chan struct{} // yields for each watch of pods, which brings only what comes after it
}

func newCluster(t *testing.T) *cluster {
	c := &cluster{fake.NewClientset(), t, make(chan struct{}, 10)}
	c.PrependWatchReactor("pods", func(a clienttesting.Action) (bool, watch.Interface, error) {
		w, err := c.Tracker().Watch(a.GetResource(), a.GetNamespace())
		c.watching <- struct{}{}
		return true, w, err
	})
	return c
}

func (c *cluster) create(p *corev1.Pod) {
	c.t.Helper()
	if _, err := c.CoreV1().Pods(namespace).Create(c.t.Context(), p, metav1.CreateOptions{}); err != nil {
		c.t.Fatal(err)
	}
}

func (c *cluster) update(p *corev1.Pod) {
	c.t.Helper()
	if _, err := c.CoreV1().Pods(namespace).Update(c.t.Context(), p, metav1.UpdateOptions{}); err != nil {
		c.t.Fatal(err)
	}
}

func (c *cluster) remove(name string) {
	c.t.Helper()
	if err := c.CoreV1().Pods(namespace).Delete(c.t.Context(), name, metav1.DeleteOptions{}); err != nil {
		c.t.Fatal(err)
	}
}

// asked counts the requests of that kind so far.
func (c *cluster) asked(verb, resource string) (n int) {
	for _, a := range c.Actions() {
		if a.GetVerb() == verb && a.GetResource().Resource == resource {
			n++
		}
	}
	return n
}

func follow(t *testing.T, w *Watcher, name string) *Pod {
	t.Helper()
	p, err := w.Follow(name)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Stop)
	return p
}

// soon is a context that ends before a hanging test is killed.
func soon(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	t.Cleanup(cancel)
	return ctx
}

func runs(p *corev1.Pod) (bool, error) {
	s := status(p, sandboxContainer)
	return s != nil && s.State.Running != nil, nil
}

// wait waits until the pod runs, which must not fail.
func wait(t *testing.T, p *Pod) {
	t.Helper()
	if _, err := p.Wait(soon(t), runs); err != nil {
		t.Fatal(err)
	}
}

// over waits for the end.
func over(t *testing.T, p *Pod) {
	t.Helper()
	select {
	case <-p.Done():
	case <-soon(t).Done():
		t.Fatal("the call has not returned, want its end")
	}
}
