// Package layers makes layers, each once, in a sandbox of its own that no user's code has
// seen: caches that toolchains fill, and libraries that package tools install. It also
// knows which libraries an open sandbox has, and copies more of them in.
package layers

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"reflect"
	"sync"
	"time"

	"github.com/llmsandbox/llmsandbox/backend"
	"github.com/llmsandbox/llmsandbox/internal/agentclient"
	"github.com/llmsandbox/llmsandbox/internal/egress"
	"github.com/llmsandbox/llmsandbox/internal/language"
	"github.com/llmsandbox/llmsandbox/internal/layertree"
)

// A Maker makes the layers of one backend.
type Maker struct {
	Backend backend.Backend
	// Open opens a sandbox on the backend for a language. The spec's ID is Open's to choose.
	Open func(ctx context.Context, b backend.Backend, lang *language.Language, spec backend.Spec, limits Limits) (Sandbox, error)
}

// Limits are those of what runs in a sandbox that makes a layer.
type Limits struct {
	Output  int64         // bytes
	Timeout time.Duration // of each run
}

// A Sandbox is one that makes a layer.
type Sandbox interface {
	// Client connects to its agent.
	Client(context.Context) (*agentclient.Client, error)
	Guest() backend.Guest
	// Run runs a plan to its end. It is made again when a program is not there of which
	// there are alternatives.
	Run(context.Context, Run) (Outcome, error)
	// Reach lets it reach what a policy allows, and nothing else.
	Reach(context.Context, *egress.Policy) error
	Close() error
}

// A Run is what a sandbox that makes a layer is to run.
type Run struct {
	// Plan makes the plan; program returns the alternative that the sandbox has.
	Plan    func(program func(alternatives ...string) string) (language.Plan, error)
	Output  io.Writer     // gets stdout and stderr; may be nil
	Timeout time.Duration // 0: the one of Limits
}

// steps is the plan of steps that need no choice.
func steps(list ...language.Step) func(func(...string) string) (language.Plan, error) {
	return func(func(...string) string) (language.Plan, error) { return language.Plan{Steps: list}, nil }
}

// What became of a Run; there are other statuses, too.
const (
	StatusOK      = "ok"
	StatusTimeout = "timeout"
)

// An Outcome is what became of a Run, as a result of the handle says it.
type Outcome struct {
	Status, Reason string
	Stdout, Stderr string
	Attempts       []egress.Attempt // to reach something
}

// layerKey is the key of a language's layer that depends on nothing but the fields of a
// struct, which has a JSON form.
func layerKey(lang string, depends any) string {
	b, _ := json.Marshal(depends)
	sum := sha256.Sum256(b)
	return lang + "-" + hex.EncodeToString(sum[:16])
}

// making are the layers that this process makes now. Another caller that needs one waits for
// it, and gets the same error: a package that does not exist would otherwise be looked for once
// more by each caller that waits.
var making flights

// flights let one of several callers with the same key do the work.
type flights struct {
	mu  sync.Mutex
	now map[flightKey]*flight
}

type flightKey struct {
	backend any
	key     string
}

type flight struct {
	done  chan struct{}
	value string
	err   error
	// gaveUp means that it failed when the context of its caller had ended.
	gaveUp bool
}

// do calls work, or waits for another's call of the same key.
func (f *flights) do(ctx context.Context, backend any, key string, work func() (string, error)) (string, error) {
	if !reflect.ValueOf(backend).Comparable() {
		return work() // its own layers let one at a time do it, too
	}
	k := flightKey{backend, key}
	for {
		f.mu.Lock()
		other := f.now[k]
		if other == nil {
			break
		}
		f.mu.Unlock()
		select {
		case <-other.done:
		case <-ctx.Done():
			return "", context.Cause(ctx)
		}
		if !other.gaveUp {
			return other.value, other.err
		}
	}
	own := &flight{done: make(chan struct{})}
	if f.now == nil {
		f.now = map[flightKey]*flight{}
	}
	f.now[k] = own
	f.mu.Unlock()
	defer func() {
		f.mu.Lock()
		delete(f.now, k)
		f.mu.Unlock()
		close(own.done)
	}()
	own.value, own.err = work()
	own.gaveUp = own.err != nil && ctx.Err() != nil
	return own.value, own.err
}

// takeOut copies a directory of the sandbox into a directory of the host, whole or not at all.
func takeOut(ctx context.Context, s Sandbox, from, to string, o layertree.Options) error {
	client, err := s.Client(ctx)
	if err != nil {
		return err
	}
	take := client.TarOut
	if o.Links {
		take = client.TarTree
	}
	o.At = from
	pr, pw := io.Pipe()
	sent := make(chan error, 1)
	go func() {
		result, err := take(ctx, from, "", pw)
		if err == nil && len(result.Skipped) > 0 {
			err = fmt.Errorf("it cannot be taken as it is: %s", result.Skipped[0])
		}
		pw.CloseWithError(err)
		sent <- err
	}()
	err = layertree.Unpack(pr, to, o)
	pr.CloseWithError(io.ErrClosedPipe) // ends a sender whose reader is gone
	if serr := <-sent; err == nil && serr != nil && !errors.Is(serr, io.ErrClosedPipe) {
		err = serr
	}
	if err != nil {
		return fmt.Errorf("take %s out of the sandbox: %w", from, err)
	}
	return nil
}
