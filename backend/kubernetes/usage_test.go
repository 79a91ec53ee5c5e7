package kubernetes

import (
	"testing"
	"time"

	"github.com/llmsandbox/llmsandbox/backend"
)

func TestUsageOf(t *testing.T) {
	for said, want := range map[string]backend.Usage{
		"":                                    {},
		"memory 4096\npeak 8192\ncpu 1500\n":  {MemoryKnown: true, Memory: 4096, MemoryPeak: 8192, CPUKnown: true, CPU: 1500 * time.Nanosecond},
		"cpu 7\n":                             {CPUKnown: true, CPU: 7},
		"memory -1\ncpu x\nmemory\nother 5\n": {},
	} {
		if got := usageOf([]byte(said)); got != want {
			t.Errorf("%q: %+v, want %+v", said, got, want)
		}
	}
}
