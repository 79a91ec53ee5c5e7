//go:build linux

package files_test

import (
	"context"
	"io"
	"os"
	"sync"
	"testing"
	"time"
)

// TestSlowClients: a client that reads or sends slowly does not keep others from the files.
func TestSlowClients(t *testing.T) {
	c, root := serve(t)
	if err := os.Truncate(newFile(t, root+"/sandbox/large"), 8<<20); err != nil {
		t.Fatal(err)
	}
	const many = 20
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	var all sync.WaitGroup
	began := make(chan struct{}, many)
	enough := make(chan struct{})
	for range many {
		all.Go(func() {
			if _, err := c.TarOut(ctx, "large", "", &slowWriter{began: began, enough: enough}); err != nil {
				t.Error(err)
			}
		})
	}
	for range many {
		select {
		case <-began:
		case <-ctx.Done():
			t.Fatal("an archive waits for others that are not read, want it served")
		}
	}
	if _, err := c.Stat(ctx, "large"); err != nil {
		t.Errorf("while archives are not read: %v", err)
	}
	close(enough)
	all.Wait()
}

// slowWriter takes something, and more once it may.
type slowWriter struct {
	began  chan<- struct{}
	enough <-chan struct{}
	once   sync.Once
}

func (w *slowWriter) Write(p []byte) (int, error) {
	w.once.Do(func() { w.began <- struct{}{} })
	<-w.enough
	return io.Discard.Write(p)
}

func newFile(t *testing.T, name string) string {
	t.Helper()
	if err := os.WriteFile(name, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	return name
}
