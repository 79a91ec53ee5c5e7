package backendtest

import (
	"math"
	"testing"
	"time"

	"github.com/llmsandbox/llmsandbox"
)

// acceptance60PrintOnly compares what is loaded, and the least CPU time of runs with the
// capture and without it in turn. How long a run takes is up to what else the machine does;
// its CPU time is less so, and that can only add to it: the least of both come closer to
// what they are with every round, and a difference that stays is the capture's.
func (s *suite) acceptance60PrintOnly(t *testing.T) {
	s.has(t, FreshInterpreters)
	const (
		most     = 20 * time.Millisecond
		enough   = 12 // rounds, where there is no such difference by then
		patience = 48
	)
	sb := s.openWith(t, llmsandbox.Options{Language: "python"}, "python3")
	try := func(off bool, code string) *llmsandbox.Result {
		res := run(t, sb, code, &llmsandbox.RunOptions{Artifacts: &llmsandbox.ArtifactOptions{Off: off}})
		wantExit(t, res, 0)
		wantArtifacts(t, res)
		return res
	}
	const loaded = "import sys; print(*sorted(sys.modules))"
	if with, without := try(false, loaded).Stdout, try(true, loaded).Stdout; with != without {
		t.Errorf("modules with the capture\n%swithout\n%s", with, without)
	}
	with, without := time.Duration(math.MaxInt64), time.Duration(math.MaxInt64)
	for round := 1; ; round++ {
		for off, least := range map[bool]*time.Duration{false: &with, true: &without} {
			res := try(off, "print(1)")
			wantStdout(t, res, "1\n")
			*least = min(*least, res.CPU)
		}
		slower := with-without > most
		if round >= enough && !slower || round == patience {
			t.Logf("CPU time: %v with the capture, %v without, in %d rounds", with, without, round)
			if slower || without <= 0 {
				t.Errorf("CPU time with the capture is %v, without %v, want more than 0 and at most %v between them", with, without, most)
			}
			return
		}
	}
}
