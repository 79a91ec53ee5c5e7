package engine

import (
	"context"
	"fmt"
	"io"
	"sync"

	"github.com/containerd/errdefs"
	"github.com/moby/moby/client"

	"github.com/llmsandbox/llmsandbox/backend"
	"github.com/llmsandbox/llmsandbox/internal/engine/absent"
)

// A session is a way into one sandbox on an engine. What its end means is told by the
// types that embed it.
type session struct {
	backend      *Backend
	container    string
	agent        string // the agent's path inside
	token        string
	info         backend.Info
	guest        backend.Guest
	capabilities backend.Capabilities

	watcher *watcher

	mu    sync.Mutex
	first *stream // the agent's own standard streams, until the first Dial takes them
}

func (m *session) ID() string                         { return m.info.ID }
func (m *session) Info() backend.Info                 { return m.info }
func (m *session) Guest() backend.Guest               { return m.guest }
func (m *session) Capabilities() backend.Capabilities { return m.capabilities }
func (m *session) Done() <-chan struct{}              { return m.watcher.done }

// End knows nothing: an engine does not keep a container that has ended.
func (m *session) End() backend.End { return backend.End{} }

// OOMKills is told by the agent with each program's end.
func (m *session) OOMKills(context.Context) (int64, bool) { return 0, false }

// Dial opens a stream to the agent: the first is the container's own stdin and stdout,
// later ones are carried by a program that the engine starts inside.
func (m *session) Dial(ctx context.Context) (io.ReadWriteCloser, error) {
	m.mu.Lock()
	s := m.first
	m.first = nil
	m.mu.Unlock()
	if s != nil {
		return s, nil
	}
	if m.watcher.isDone() {
		return nil, fmt.Errorf("sandbox %s has ended: %w", m.ID(), backend.ErrNotFound)
	}
	rwc, err := m.connect(ctx)
	if gone(err) {
		m.watcher.end()
		return nil, fmt.Errorf("sandbox %s has ended: its container is gone or stopped: %w", m.ID(), backend.ErrNotFound)
	}
	if err != nil {
		return nil, m.backend.explain("connect to the agent", err)
	}
	m.watcher.resume(m.backend.client, m.container)
	return rwc, nil
}

// gone tells whether the engine says that there is no such container that runs.
func gone(err error) bool { return absent.Container(err) || errdefs.IsConflict(err) }

// release gives up what this handle holds: its streams and its watcher.
func (m *session) release() {
	m.mu.Lock()
	s := m.first
	m.first = nil
	m.mu.Unlock()
	if s != nil {
		_ = s.Close() // nobody has used it
	}
	m.watcher.stop()
}

// remove ends and removes the container, running or not. There is no grace.
func (m *session) remove(ctx context.Context) error {
	m.release()
	_, err := m.backend.client.ContainerRemove(ctx, m.container, client.ContainerRemoveOptions{Force: true, RemoveVolumes: true})
	// Conflict: its removal is under way already.
	if gone(err) {
		return nil
	}
	return m.backend.explain("remove the container", err)
}
