package backendtest

import (
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/llmsandbox/llmsandbox"
)

// attacks are programs that take all they can get, for as long as they live.
var attacks = map[string]struct {
	code string
	need string // the control without which it would take the machine's
}{
	"01 fork bomb": {"import os\nwhile True:\n  try: os.fork()\n  except OSError: pass", "pids"},
	"08 disk": {`
import os, time
f = os.open("full", os.O_CREAT | os.O_WRONLY)
while True:
    try: os.write(f, b"x" * (1 << 20))
    except OSError: time.sleep(0.01)`, ""},
	"13 descriptors": {"import os\nkept = []\nwhile True:\n  try: kept.append(os.open('/dev/null', os.O_RDONLY))\n  except OSError: pass", ""},
	"14 flood":       {"import os\nwhile True: os.write(1, b'x' * 65536)", ""},
	"16 spin":        {"import os\nfor _ in range(4): os.fork()\nwhile True: pass", ""},
	"21 memory":      {"kept = []\nwhile True:\n  try: kept.append(bytearray(1 << 20))\n  except MemoryError: pass", "memory"},
}

// abuseNeighbours keeps one sandbox busy with an attack, and meanwhile uses another
// one and the attacked one's own control interface.
func (s *suite) abuseNeighbours(t *testing.T) {
	names := slices.Sorted(maps.Keys(attacks))
	options := make([]llmsandbox.Options, 2*len(names))
	for i := range names {
		options[2*i+1].Limits = llmsandbox.Limits{PIDs: 64, Memory: 128 << 20, Disk: 32 << 20, Output: llmsandbox.Unlimited, CPUs: 0.5}
	}
	sandboxes := s.openings(t, options)
	for i, name := range names {
		t.Run(name, func(t *testing.T) {
			a, good, bad := attacks[name], sandboxes.use(t, 2*i), sandboxes.use(t, 2*i+1)
			if a.need == "pids" && control(bad, "pids").By == "" || a.need == "memory" {
				needs(t, bad, a.need)
			}
			_, dies := s.Lacks[OOMAlone]
			dies = dies && a.need == "memory"
			ctx := testContext(t)
			if err := good.WriteFile(ctx, "kept", []byte("unharmed")); err != nil {
				t.Fatal(err)
			}
			done := make(chan struct{})
			go func() {
				defer close(done)
				// How it ends is the catalogue's matter.
				_, _ = bad.Run(ctx, a.code, &llmsandbox.RunOptions{Timeout: 3 * time.Second})
			}()
			for rounds := 0; ; rounds++ {
				select {
				case <-done:
					if rounds == 0 {
						t.Errorf("nothing was tried during the attack: rounds = %v, want other than 0", rounds)
					}
					if !dies {
						answers(t, bad)
					}
					return
				default:
				}
				start := time.Now()
				res := run(t, good, "print(open('kept').read()); open('new', 'w').write('x' * 100000)", nil)
				wantStdout(t, res, "unharmed\n")
				if d := time.Since(start); d > hang {
					t.Errorf("the other sandbox took %v for a run, want at most %v", d, hang)
				}
				if dies {
					continue
				}
				start = time.Now()
				// 21: the sandbox under attack can still be listed, inspected and stopped.
				if _, err := bad.ListDir(ctx, here(bad, "/sandbox")); err != nil {
					t.Errorf("list a directory under attack: %v", err)
				}
				if _, err := llmsandbox.List(ctx, s.Backend); err != nil {
					t.Errorf("list sandboxes: %v", err)
				}
				if d := time.Since(start); d > hang {
					t.Errorf("the attacked sandbox took %v to answer, want at most %v", d, hang)
				}
			}
		})
	}
}
