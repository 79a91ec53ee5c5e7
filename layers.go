package llmsandbox

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

	"github.com/llmsandbox/llmsandbox/internal/layertree"
)

// layerKey is the key of a language's layer that depends on nothing but the fields of a
// struct, which has a JSON form.
func layerKey(lang string, depends any) string {
	b, _ := json.Marshal(depends)
	sum := sha256.Sum256(b)
	return lang + "-" + hex.EncodeToString(sum[:16])
}

// making are the layers that this process is just making. Who asks for one of them waits for
// it, and gets the same error: a package that does not exist would else be looked for once
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
	// gaveUp tells that it failed when the context of its caller had ended.
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

// takeOut copies a folder of the sandbox into a folder of the host, whole or not at all.
func (s *Sandbox) takeOut(ctx context.Context, from, to string, o layertree.Options) error {
	client, err := s.link.Client(ctx)
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
