package backendtest

import (
	"testing"
	"time"

	"github.com/llmsandbox/llmsandbox"
)

// usage compares what a sandbox is said to use with what its program did.
func (s *suite) usage(t *testing.T) {
	ctx := testContext(t)
	sb := s.open(t, llmsandbox.Options{})
	before, err := sb.Usage(ctx)
	if err != nil {
		t.Fatal(err)
	}
	wantExit(t, run(t, sb, `
import time
kept = bytearray(64 << 20)
while time.process_time() < 0.5: pass
`, nil), 0)
	after, err := sb.Usage(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if before.MemoryKnown != after.MemoryKnown || before.CPUKnown != after.CPUKnown {
		t.Errorf("what is known changes: %+v, then %+v, want MemoryKnown = %v, CPUKnown = %v", before, after, after.MemoryKnown, after.CPUKnown)
	}
	if after.MemoryKnown && (after.Memory <= 0 || after.MemoryPeak != 0 && after.MemoryPeak < 64<<20) {
		t.Errorf("memory is %+v after a program that took 64 MiB, want Memory > 0 and MemoryPeak 0 or at least 64 MiB", after)
	}
	if used := after.CPU - before.CPU; after.CPUKnown && used < 400*time.Millisecond {
		t.Errorf("%v of CPU time for a program that took 0.5 s, want CPUKnown false or used >= 400ms", used)
	}
}
