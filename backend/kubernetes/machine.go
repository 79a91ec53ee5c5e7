package kubernetes

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/llmsandbox/llmsandbox/backend"
	"github.com/llmsandbox/llmsandbox/internal/kubernetes/podexec"
	"github.com/llmsandbox/llmsandbox/internal/kubernetes/podspec"
)

// removeTimeout bounds the removal of a pod whose caller gave no bound.
const removeTimeout = 60 * time.Second

// machine is a sandbox that this process owns.
type machine struct {
	session
	uid    types.UID    // of the pod; empty: there is none
	unhold func() error // lets go of the layers

	watching sync.WaitGroup // for follow
	removal  sync.Mutex
	removed  bool
	left     bool // the owner
}

// start gets the pod and sees it start.
func (m *machine) start(ctx context.Context, spec backend.Spec, pod *corev1.Pod) (err error) {
	b := m.backend
	m.target = podexec.Target{Namespace: b.cluster.Namespace, Pod: pod.Name, Container: podspec.Container}
	// Before the pod is there, so that nothing of it is missed.
	if m.pod, err = b.watch.Follow(pod.Name); err != nil {
		return err
	}
	made, err := b.source.Obtain(ctx, pod)
	if err != nil {
		return err
	}
	m.uid, m.target.Pod = made.UID, made.Name
	if made.Name != pod.Name { // not one that was made for us
		m.pod.Stop()
		if m.pod, err = b.watch.Follow(made.Name); err != nil {
			return err
		}
	}
	m.pod.Is(made)
	if err := m.describe(made); err != nil {
		return fmt.Errorf("pod %s: %w", made.Name, err)
	}
	if err := m.await(ctx, spec, made); err != nil {
		return err
	}
	m.watching.Go(m.follow)
	return m.enter(ctx)
}

// follow waits for the sandbox's end, records why, and removes what is left of it.
func (m *machine) follow() {
	select {
	case <-m.over: // closed by its owner, who removes it
		return
	case <-m.pod.Done():
	}
	m.end(m.pod.Ended())
	ctx, cancel := context.WithTimeout(context.Background(), removeTimeout)
	defer cancel()
	// Whoever closes the sandbox tries again, and is told.
	_ = m.remove(ctx)
}

// Close is Destroy. The pod stays until it is deleted, which takes less time when its agent
// has ended.
func (m *machine) Close(endAgent func() bool) error {
	if endAgent != nil {
		endAgent()
	}
	ctx, cancel := context.WithTimeout(context.Background(), removeTimeout)
	defer cancel()
	return m.Destroy(ctx)
}

// Destroy deletes the pod. There is no grace.
func (m *machine) Destroy(ctx context.Context) error {
	m.end("")
	m.watching.Wait()
	return m.remove(ctx)
}

// remove gives everything back, once, but tries again to delete what could not be.
func (m *machine) remove(ctx context.Context) error {
	m.removal.Lock()
	defer m.removal.Unlock()
	if m.removed {
		return nil
	}
	m.release()
	err := m.deletePod(ctx, deletePatience)
	m.removed = err == nil
	if m.left {
		return err
	}
	m.left = true
	var owed func(context.Context) error
	if err != nil {
		owed = func(ctx context.Context) error { return m.deletePod(ctx, 0) }
	}
	return errors.Join(err, m.unhold(), m.backend.owner.leave(ctx, owed))
}

func (m *machine) deletePod(ctx context.Context, patience time.Duration) error {
	if m.uid == "" {
		return nil
	}
	return deletePod(ctx, m.backend.cluster.Client.CoreV1().Pods(m.target.Namespace), m.target.Pod, m.uid, patience)
}
