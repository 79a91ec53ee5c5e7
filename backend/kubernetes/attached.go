package kubernetes

import (
	"context"
	"sync"

	"k8s.io/apimachinery/pkg/types"
)

// attached is a sandbox that another handle owns.
type attached struct {
	session
	uid      types.UID
	watching sync.WaitGroup
}

// watch ends this handle when the sandbox ends.
func (m *attached) watch() {
	m.watching.Go(func() {
		select {
		case <-m.over:
		case <-m.pod.Done():
			m.end(m.pod.Ended())
		}
	})
}

// Close leaves the sandbox alone.
func (m *attached) Close(func() bool) error {
	m.release()
	m.watching.Wait()
	return nil
}

// Destroy ends it all the same.
func (m *attached) Destroy(ctx context.Context) error {
	err := deletePod(ctx, m.backend.cluster.Client.CoreV1().Pods(m.target.Namespace), m.target.Pod, m.uid, deletePatience)
	if err == nil {
		return m.Close(nil)
	}
	return err
}
