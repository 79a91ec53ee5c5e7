//go:build linux

package engine

import (
	"bytes"
	"errors"
	"io"
	"sync"
	"syscall"
	"testing"

	"github.com/moby/moby/api/types/container"
	"github.com/moby/moby/client"

	"github.com/llmsandbox/llmsandbox"
	"github.com/llmsandbox/llmsandbox/backend/engine"
	"github.com/llmsandbox/llmsandbox/internal/testfaults"
)

// Two processes that want the agent on an engine at once both get it.
func TestFaultsTwoFillers(t *testing.T) {
	p := privateDocker(t)
	b, c := privateBackend(t, p, engine.Options{})
	owners := []*testfaults.Owner{startOwner(t, b, p.Host), startOwner(t, b, p.Host), startOwner(t, b, p.Host)}
	for _, o := range owners {
		o.ID(t)
	}
	for _, o := range owners {
		o.End(t)
	}
	wantAgent(t, b, c)
}

// A process that is killed while it brings the agent leaves neither half of one that
// counts, nor a lock that no process can take.
func TestFaultsFillerKilled(t *testing.T) {
	leakFree(t)
	p := privateDocker(t)
	b, c := privateBackend(t, p, engine.Options{})
	reached := make(chan struct{})
	var once sync.Once
	way := newProxy(t, p.Host, func(to io.Writer) io.Writer {
		return &stalling{to: to, stall: func() { once.Do(func() { close(reached) }) }}
	})
	o := startOwner(t, b, way.Host)
	<-reached
	fillers, err := b.List(testfaults.Context(t))
	if err != nil || len(fillers) != 0 {
		t.Errorf("the list has %+v, %v, want no error, no fillers", fillers, err)
	}
	if found, err := b.GC(testfaults.Context(t)); err != nil || len(found) > 0 {
		t.Errorf("a collection takes %+v of a filler that lives, %v, want no error, no found", found, err)
	}
	o.Kill(t)
	locks, err := c.ContainerList(testfaults.Context(t), client.ContainerListOptions{All: true, Filters: make(client.Filters).Add("label", "llmsandbox.role=fill")})
	if err != nil || len(locks.Items) != 1 || len(agentVolumes(t, c)) != 1 {
		t.Fatalf("it was not killed in the middle: %+v, %v, %q, want no error, len(locks.Items) = 1, len(agentVolumes(t, c)) = 1", locks.Items, err, agentVolumes(t, c))
	}
	wantAgent(t, b, c)
}

// A stalling writer passes on what is no archive, and of one no more than the first bytes.
type stalling struct {
	to    io.Writer
	left  int
	found bool
	stall func()
}

func (s *stalling) Write(p []byte) (int, error) {
	if !s.found && bytes.HasPrefix(p, []byte("PUT ")) && bytes.Contains(p, []byte("/archive?")) {
		s.found, s.left = true, 100_000
	}
	if !s.found {
		return s.to.Write(p)
	}
	n := min(s.left, len(p))
	if _, err := s.to.Write(p[:n]); err != nil {
		return 0, err
	}
	if s.left -= n; s.left == 0 {
		s.stall()
	}
	return len(p), nil
}

// An owner that is stopped is not dead: no collection takes its sandbox. One that is killed
// takes it along, without help.
func TestFaultsOwnerFrozen(t *testing.T) {
	p := privateDocker(t)
	b, c := privateBackend(t, p, engine.Options{})
	o := startOwner(t, b, p.Host)
	id := o.ID(t)
	o.Signal(t, syscall.SIGSTOP)
	if found, err := b.GC(testfaults.Context(t)); err != nil || len(found) > 0 {
		t.Errorf("a collection takes %+v, %v, want no error, no found", found, err)
	}
	sb, err := llmsandbox.Attach(testfaults.Context(t), id, &llmsandbox.AttachOptions{Backend: b})
	if err != nil {
		t.Fatal(err)
	}
	testfaults.Works(t, sb)
	if err := sb.Close(); err != nil {
		t.Error(err)
	}
	ended := c.ContainerWait(testfaults.Context(t), "llmsandbox-"+id, client.ContainerWaitOptions{Condition: container.WaitConditionRemoved})
	o.Kill(t)
	select {
	case <-ended.Result:
	case err := <-ended.Error:
		t.Error(err)
	}
	if _, err := llmsandbox.Attach(testfaults.Context(t), id, &llmsandbox.AttachOptions{Backend: b}); !errors.Is(err, llmsandbox.ErrNotFound) {
		t.Errorf("attach to what went with its owner: %v, want llmsandbox.ErrNotFound", err)
	}
	wantNothing(t, b, c)
}
