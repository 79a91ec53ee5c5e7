package e2b

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"connectrpc.com/connect"

	"github.com/llmsandbox/llmsandbox"
)

// TestIdleWatchers: a watcher that nobody asks is dropped, one that is asked is not, nor is a stream.
func TestIdleWatchers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ws := &watchers{}
		ids := map[string]bool{}
		for _, polled := range []bool{true, false} {
			id, _, err := ws.add(t.Context(), &watcher{polled: polled})
			if err != nil {
				t.Fatal(err)
			}
			ids[id] = polled
		}
		for range 3 {
			for id, polled := range ids {
				if got := ws.polled(id) != nil; got != polled {
					t.Errorf("there is a watcher to be asked: %t, want %t", got, polled)
				}
			}
			time.Sleep(maxIdle - time.Second)
		}
		time.Sleep(maxIdle)
		synctest.Wait()
		if len(ws.all) != 1 {
			t.Errorf("%d watchers are left, want the stream's", len(ws.all))
		}
		for id := range ws.all {
			ws.remove(id)
		}
	})
}

// TestWatcherForgets: a watcher keeps events within its bound, says once that it could not, and goes on.
func TestWatcherForgets(t *testing.T) {
	w := &watcher{dir: "/d", wake: make(chan struct{}, 1)}
	ctx := t.Context()
	names := func() (n int, err error) {
		events, err := w.take()
		return len(events), err
	}
	for _, path := range []string{"/d", "/dir/x", "/other", "", "/d/x", "/d/x", "/d/y"} {
		w.keep(ctx, llmsandbox.FileEvent{Op: llmsandbox.FileWritten, Path: path})
	}
	if n, err := names(); n != 2 || err != nil {
		t.Errorf("%d events, error %v, want the 2 of files in the directory", n, err)
	}
	for lost, lose := range []func(){
		func() { w.keep(ctx, llmsandbox.FileEvent{Op: llmsandbox.FileOverflow}) },
		func() {
			for n := range maxPending / 10 {
				w.keep(ctx, llmsandbox.FileEvent{Op: llmsandbox.FileCreated, Path: fmt.Sprint("/d/", n)})
			}
		},
	} {
		lose()
		if n, err := names(); connect.CodeOf(err) != connect.CodeDataLoss || n != 0 {
			t.Errorf("%d: %d events, error %v, want data_loss", lost, n, err)
		}
		w.pending = nil
		w.keep(ctx, llmsandbox.FileEvent{Op: llmsandbox.FileRemoved, Path: "/d/after"})
		if n, err := names(); n != 1 || err != nil {
			t.Errorf("%d: %d events, error %v, want the one after it", lost, n, err)
		}
	}
}
