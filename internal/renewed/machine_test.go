package renewed

import (
	"context"
	"errors"
	"testing"

	"go.uber.org/goleak"

	"github.com/llmsandbox/llmsandbox/backend"
)

type fake struct {
	backend.Machine
	id   string
	done chan struct{}
}

func newFake(id string) *fake { return &fake{id: id, done: make(chan struct{})} }

func (f *fake) ID() string              { return f.id }
func (f *fake) Done() <-chan struct{}   { return f.done }
func (f *fake) Close(func() bool) error { return nil } // of a handle
func (f *fake) Destroy(context.Context) error {
	close(f.done)
	return nil
}

func ended(m *Machine) bool {
	select {
	case <-m.Done():
		return true
	default:
		return false
	}
}

// TestReplace: the end of a machine is that of all only if none comes in its place.
func TestReplace(t *testing.T) {
	defer goleak.VerifyNone(t)
	first, second := newFake("first"), newFake("second")
	m := New(first)
	err := m.Replace(func(old backend.Machine) (backend.Machine, error) {
		if old != first {
			t.Errorf("%v is replaced, want the first one", old)
		}
		return second, old.Destroy(t.Context())
	})
	if err != nil || m.ID() != "second" || ended(m) {
		t.Fatalf("%v, %s, ended: %v; want the second one, which lives", err, m.ID(), ended(m))
	}
	failed := errors.New("failed")
	err = m.Replace(func(backend.Machine) (backend.Machine, error) { return nil, failed })
	if err != failed || m.ID() != "second" || ended(m) {
		t.Errorf("%v, %s, ended: %v; want the error, and the second one still", err, m.ID(), ended(m))
	}
	err = m.Replace(func(old backend.Machine) (backend.Machine, error) {
		return nil, errors.Join(failed, old.Destroy(t.Context()))
	})
	if !errors.Is(err, failed) {
		t.Errorf("%v, want %v", err, failed)
	}
	<-m.Done()
}

func TestDestroyEnds(t *testing.T) {
	defer goleak.VerifyNone(t)
	m := New(newFake("one"))
	if err := m.Destroy(t.Context()); err != nil || !ended(m) {
		t.Errorf("%v, ended: %v; want the end", err, ended(m))
	}
}

// A late fake has not seen its end when it is closed.
type late struct{ *fake }

func (late) Destroy(context.Context) error { return nil }

func TestDestroyEndsUnseen(t *testing.T) {
	defer goleak.VerifyNone(t)
	m := New(late{newFake("one")})
	if err := errors.Join(m.Destroy(t.Context()), m.Close(nil)); err != nil || !ended(m) {
		t.Errorf("%v, ended: %v; want the end", err, ended(m))
	}
}

// TestCloseOfHandle: the machine lives on, and nothing waits for its end.
func TestCloseOfHandle(t *testing.T) {
	defer goleak.VerifyNone(t)
	m := New(newFake("one"))
	for range 2 {
		if err := m.Close(nil); err != nil || ended(m) {
			t.Errorf("%v, ended: %v; want no end", err, ended(m))
		}
	}
}
