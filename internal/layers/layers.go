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
	"sync/atomic"
	"time"

	"github.com/llmsandbox/llmsandbox/backend"
	"github.com/llmsandbox/llmsandbox/internal/agentclient"
	"github.com/llmsandbox/llmsandbox/internal/egress"
	"github.com/llmsandbox/llmsandbox/internal/flight"
	"github.com/llmsandbox/llmsandbox/internal/language"
	"github.com/llmsandbox/llmsandbox/internal/layertree"
)

// A Maker makes the layers of one backend.
type Maker struct {
	Backend backend.Backend
	// Open opens a sandbox on the backend for a language. The spec's ID is Open's to choose.
	Open func(ctx context.Context, b backend.Backend, lang *language.Language, spec backend.Spec, limits Limits) (Sandbox, error)
	// InPlace reports whether libraries are installed below the working directory of the sandbox they are for, whose
	// files are kept, in a sandbox beside it. The backend needs no layers then.
	InPlace bool
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

// A stayer keeps layers that sandboxes may see where they are.
type stayer interface {
	// LayersStay reports whether sandboxes have layers at the path of their source, whatever their target: they mount nothing.
	LayersStay() bool
}

// stay reports whether sandboxes have the layers where they are.
func stay(kept backend.Layers) bool {
	s, ok := kept.(stayer)
	return ok && s.LayersStay()
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
var making flight.Group[layerID, string]

type layerID struct {
	backend any
	key     string
}

// once has one of several callers do the work for a layer. Reports go to that one alone, as long
// as it waits: to the others a layer comes about as if it had been there.
func (m Maker) once(ctx context.Context, key string, report func(backend.Progress), work func(context.Context, func(backend.Progress)) (string, error)) (string, error) {
	if !reflect.ValueOf(m.Backend).Comparable() {
		return work(ctx, report) // its own layers let one at a time do it, too
	}
	var own atomic.Bool
	source, _, err := making.Do(ctx, layerID{m.Backend, key}, func(p backend.Progress) {
		if own.Load() && report != nil {
			report(p)
		}
	}, func(ctx context.Context, report func(backend.Progress)) (string, error) {
		own.Store(true)
		return work(ctx, report)
	})
	return source, err
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
