package kubernetes

import (
	"context"
	"fmt"
	"io"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/llmsandbox/llmsandbox/backend"
	"github.com/llmsandbox/llmsandbox/internal/kubernetes/podexec"
	"github.com/llmsandbox/llmsandbox/internal/kubernetes/podwatch"
)

// A session is a way into one sandbox of a cluster. What its end means is told by the
// types that embed it.
type session struct {
	backend      *Backend
	target       podexec.Target
	door         door
	info         backend.Info
	guest        backend.Guest
	capabilities backend.Capabilities

	pod *podwatch.Pod // nil until it is followed

	over     chan struct{} // closed when the sandbox has ended, or counts as ended
	once     sync.Once
	released sync.Once

	mu    sync.Mutex
	words string    // why it ended
	first *stream   // the one that Create or Attach made, until the first Dial takes it
	made  time.Time // when it was made
}

func newSession(b *Backend, guest backend.Guest) session {
	return session{backend: b, guest: guest, over: make(chan struct{})}
}

func (m *session) ID() string                         { return m.info.ID }
func (m *session) Info() backend.Info                 { return m.info }
func (m *session) Guest() backend.Guest               { return m.guest }
func (m *session) Capabilities() backend.Capabilities { return m.capabilities }
func (m *session) Done() <-chan struct{}              { return m.over }

// OOMKills is told by the agent with each program's end.
func (m *session) OOMKills(context.Context) (int64, bool) { return 0, false }

// End tells in words why the sandbox has ended; none where its handle was closed. For memory it
// was killed where the kernel, or the container's runtime, says so.
func (m *session) End() backend.End {
	if !m.isOver() {
		return backend.End{}
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	return backend.End{Reason: m.words, KilledForMemory: m.pod != nil && m.pod.OOMKilled()}
}

// Commit fails: an image is made where it is kept, and a cluster keeps none.
func (m *session) Commit(context.Context, string, string, io.Reader) (string, error) {
	return "", fmt.Errorf("%w: the %s backend makes no images of sandboxes: use docker or podman", backend.ErrUnsupported, Name)
}

// describe takes over what a pod says of itself.
func (m *session) describe(pod *corev1.Pod) (err error) {
	if m.info, err = decodeInfo(pod); err != nil {
		return err
	}
	if m.guest, err = decodeGuest(pod); err != nil {
		return err
	}
	if m.door, err = doorOf(pod); err != nil {
		return err
	}
	m.capabilities = m.backend.controls(pod, m.info.Limits)
	return nil
}

// enter makes the first stream, over which the agent's container describes itself.
func (m *session) enter(ctx context.Context) error {
	s, err := m.reach(ctx)
	if err != nil {
		return err
	}
	m.guest = complete(m.guest, s.header)
	m.mu.Lock()
	m.first, m.made = s, time.Now()
	m.mu.Unlock()
	return nil
}

// firstAge is how old the first stream may be when it is used: an agent ends those over
// which it has not been greeted for half a minute.
const firstAge = 10 * time.Second

// Dial opens a stream to the agent.
func (m *session) Dial(ctx context.Context) (io.ReadWriteCloser, error) {
	m.mu.Lock()
	s, made := m.first, m.made
	m.first = nil
	m.mu.Unlock()
	if s != nil && time.Since(made) < firstAge {
		return s, nil
	}
	if s != nil {
		_ = s.Close() // nobody has used it
	}
	return m.reach(ctx)
}

// end records the end: nothing is said of it where words are empty.
func (m *session) end(words string) {
	m.once.Do(func() {
		m.mu.Lock()
		m.words = words
		m.mu.Unlock()
		close(m.over)
	})
}

func (m *session) isOver() bool {
	select {
	case <-m.over:
		return true
	default:
		return false
	}
}

// ended is the error of whoever wants into a sandbox that has ended.
func (m *session) ended() error {
	words := m.End().Reason
	if words == "" {
		words = "this handle was closed"
	}
	return fmt.Errorf("sandbox %s has ended: %s: %w", m.info.ID, words, backend.ErrNotFound)
}

// release gives up what this handle holds: its stream and its part of the watch.
func (m *session) release() {
	m.end("")
	m.mu.Lock()
	s := m.first
	m.first = nil
	m.mu.Unlock()
	if s != nil {
		_ = s.Close() // nobody has used it
	}
	m.released.Do(func() {
		if m.pod != nil {
			m.pod.Stop()
		}
	})
}
