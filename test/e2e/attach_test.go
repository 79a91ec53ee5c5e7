package e2e

import (
	"errors"
	"testing"

	"github.com/llmsandbox/llmsandbox"
)

// TestAttachKnowsTheLimits: runtimes are sized by the sandbox's limits, also through
// a handle that did not set them.
func TestAttachKnowsTheLimits(t *testing.T) {
	requirePrograms(t, "node")
	ctx := testContext(t)
	sb := open(t, llmsandbox.Options{Language: "javascript", Limits: llmsandbox.Limits{Memory: 256 << 20}})
	const code = "console.log(require('v8').getHeapStatistics().heap_size_limit)"
	want := run(t, sb, code, nil)
	wantExit(t, want, 0)
	same, err := llmsandbox.Attach(ctx, sb.ID(), llmsandbox.AttachOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer same.Close()
	wantStdout(t, run(t, same, code, nil), want.Stdout)
	if same.Language() != "javascript" {
		t.Errorf("attached for %s", same.Language())
	}
	if err := same.Close(); err != nil {
		t.Fatal(err)
	}
	wantExit(t, run(t, sb, code, nil), 0) // closing the handle leaves the sandbox alone
}

func TestAttachRefuses(t *testing.T) {
	ctx := testContext(t)
	for _, id := range []string{"", "../x", "A", "sb/../../etc"} {
		if _, err := llmsandbox.Attach(ctx, id, llmsandbox.AttachOptions{}); !errors.Is(err, llmsandbox.ErrInvalid) {
			t.Errorf("id %q: %v, want ErrInvalid", id, err)
		}
	}
	if _, err := llmsandbox.Attach(ctx, "sb-nowhere", llmsandbox.AttachOptions{}); !errors.Is(err, llmsandbox.ErrNotFound) {
		t.Errorf("an id of nobody: %v, want ErrNotFound", err)
	}
	sb := open(t, llmsandbox.Options{})
	_, err := llmsandbox.Attach(ctx, sb.ID(), llmsandbox.AttachOptions{Limits: llmsandbox.Limits{Memory: 64 << 20}})
	if !errors.Is(err, llmsandbox.ErrInvalid) {
		t.Errorf("a memory limit for somebody else's sandbox: %v, want ErrInvalid", err)
	}
}
