package agentbin

import (
	"context"
	"errors"
	"os/exec"
	"runtime"
	"sync"
	"syscall"
	"testing"
)

// TestExtractedCanBeExecuted: while other programs are started, too.
func TestExtractedCanBeExecuted(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	var others sync.WaitGroup
	defer others.Wait()
	defer cancel()
	for range 4 {
		others.Go(func() {
			for ctx.Err() == nil {
				_ = exec.Command("true").Run()
			}
		})
	}
	for range 20 {
		path, err := Extract(t.TempDir(), runtime.GOARCH)
		if err != nil {
			t.Fatal(err)
		}
		if err := exec.Command(path, "version").Run(); errors.Is(err, syscall.ETXTBSY) {
			t.Fatal(err)
		}
	}
}
