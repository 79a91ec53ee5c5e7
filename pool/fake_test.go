package pool

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/llmsandbox/llmsandbox"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// A fakeBackend opens sandboxes that are nothing but a name.
type fakeBackend struct {
	takes time.Duration  // to open one
	made  func(*fakeBox) // of each before it is used

	mu sync.Mutex
	// failing, when it returns an error, is how an opening ends.
	failing func(llmsandbox.Options) error
	opened  []*fakeBox
	alive   int
	most    int // at a time
}

type fakeBox struct {
	backend *fakeBackend
	id      string
	options llmsandbox.Options
	done    chan struct{}
	once    sync.Once

	pings, resets atomic.Int64
	ping          atomic.Pointer[func(context.Context) error] // what it does; nil: succeed
	reset         func(context.Context) error                 // what it does; nil: succeed
	closing       func()                                      // before it is closed
	closed        atomic.Bool
}

func (f *fakeBackend) open(ctx context.Context, o llmsandbox.Options) (box, error) {
	f.mu.Lock()
	f.alive++
	f.most = max(f.most, f.alive)
	f.mu.Unlock()
	fail := func(err error) (box, error) {
		f.mu.Lock()
		defer f.mu.Unlock()
		f.alive--
		return nil, err
	}
	select {
	case <-time.After(f.takes):
	case <-ctx.Done():
		return fail(ctx.Err())
	}
	f.mu.Lock()
	failing := f.failing
	f.mu.Unlock()
	if failing != nil {
		if err := failing(o); err != nil {
			return fail(err)
		}
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	b := &fakeBox{backend: f, id: fmt.Sprint("sb-", len(f.opened)), options: o, done: make(chan struct{})}
	if f.made != nil {
		f.made(b)
	}
	f.opened = append(f.opened, b)
	return b, nil
}

// fail sets how an opening ends from now on.
func (f *fakeBackend) fail(failing func(llmsandbox.Options) error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.failing = failing
}

func (f *fakeBackend) count() (opened, alive, most int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.opened), f.alive, f.most
}

// onPing sets what a ping does; nil: succeed.
func (b *fakeBox) onPing(ping func(context.Context) error) {
	if ping == nil {
		b.ping.Store(nil)
		return
	}
	b.ping.Store(&ping)
}

func (b *fakeBox) ID() string            { return b.id }
func (b *fakeBox) Done() <-chan struct{} { return b.done }
func (b *fakeBox) die()                  { b.once.Do(func() { close(b.done) }) }

func (b *fakeBox) Ping(ctx context.Context) error {
	b.pings.Add(1)
	if ping := b.ping.Load(); ping != nil {
		return (*ping)(ctx)
	}
	select {
	case <-b.done:
		return errors.New("dead")
	default:
		return nil
	}
}

func (b *fakeBox) Reset(ctx context.Context) error {
	b.resets.Add(1)
	if b.reset != nil {
		return b.reset(ctx)
	}
	return nil
}

func (b *fakeBox) Close() error {
	if b.closing != nil {
		b.closing()
	}
	if b.closed.Swap(true) {
		return errors.New("closed twice")
	}
	b.die()
	b.backend.mu.Lock()
	defer b.backend.mu.Unlock()
	b.backend.alive--
	return nil
}

// fake is the sandbox of a lease.
func fake(l *Lease) *fakeBox { return l.member.box.(*fakeBox) }

// newPool makes a pool over a fake backend, which is closed with the test, inside a bubble.
func newPool(t *testing.T, f *fakeBackend, cfg Config) *Pool {
	t.Helper()
	cfg.open = f.open
	p, err := New(&cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := p.Close(cancelled()); err != nil && !errors.Is(err, context.Canceled) && !errors.Is(err, context.DeadlineExceeded) {
			t.Error(err)
		}
		if _, alive, _ := f.count(); alive != 0 {
			t.Errorf("%d sandboxes are left after Close, want 0", alive)
		}
	})
	return p
}

func cancelled() context.Context {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	return ctx
}

func acquire(t *testing.T, p *Pool, key Key, tenant string) *Lease {
	t.Helper()
	l, err := p.Acquire(context.Background(), &AcquireOptions{Key: key, Tenant: tenant})
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// pass lets time go by, and waits until all that it brings about has come about. Only the
// test's own goroutine may call it.
func pass(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}
