package backendtest

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/llmsandbox/llmsandbox"
)

// escapes are programs that try to outlive their timeout.
var escapes = map[string]string{
	"children": `import subprocess, time
for i in range(5): subprocess.Popen(['sleep', '300'])
time.sleep(300)`,
	"fork bomb": `import os
while True:
    try: os.fork()
    except OSError: pass`,
	"setsid daemon": `import os, time
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        os.execvp('sleep', ['sleep', '300'])
    os._exit(0)
time.sleep(300)`,
	"nohup": `import os, time
os.system('nohup sleep 300 >/dev/null 2>&1 &')
time.sleep(300)`,
	"SIGTERM ignored": `import signal, time
for s in range(1, 32):
    try: signal.signal(s, signal.SIG_IGN)
    except (OSError, ValueError): pass
while True: time.sleep(1)`,
	"subreaper": `import ctypes, os, time
ctypes.CDLL(None).prctl(36, 1, 0, 0, 0)
if os.fork() == 0:
    if os.fork() == 0:
        os.execvp('sleep', ['sleep', '300'])
    os._exit(0)
time.sleep(300)`,
}

func (s *suite) acceptance25NothingOutlivesATimeout(t *testing.T) {
	s.has(t, FreshInterpreters)
	sb := s.open(t, llmsandbox.Options{})
	for name, code := range escapes {
		t.Run(name, func(t *testing.T) {
			if name == "fork bomb" {
				needs(t, sb, "pids") // one without bound takes as long to kill as it likes
			}
			start := time.Now()
			wantStatus(t, run(t, sb, code, &llmsandbox.RunOptions{Timeout: time.Second}), llmsandbox.StatusTimeout)
			if d := time.Since(start); d > hang {
				t.Errorf("took %v for a timeout of 1 s, want at most %v", d, hang)
			}
			left, err := sb.Shell(testContext(t), "cat /proc/[0-9]*/comm", nil)
			if err != nil || strings.Contains(left.Stdout, "sleep") || strings.Contains(left.Stdout, "python") {
				t.Errorf("after the timeout: %v, processes %q, want no error, Stdout without \"sleep\", Stdout without \"python\"", err, left.Stdout)
			}
		})
	}
}

// abuse18NothingIsLeftOfARun looks from outside at what a run leaves in the sandbox: the
// agent as it was before, and nothing else.
func (s *suite) abuse18NothingIsLeftOfARun(t *testing.T) {
	s.has(t, FreshInterpreters)
	s.has(t, SeenFromOutside)
	sb := s.open(t, llmsandbox.Options{Limits: llmsandbox.Limits{PIDs: 64}})
	needs(t, sb, "pids")
	answers(t, sb)
	own := map[int]bool{}
	for _, p := range s.processes(t, sb.ID()) {
		own[p.PID] = true
	}
	if len(own) == 0 {
		t.Fatalf("the agent cannot be seen from outside: len(own) = %v, want own not empty", len(own))
	}
	for name, code := range escapes {
		t.Run(name, func(t *testing.T) {
			wantStatus(t, run(t, sb, code, &llmsandbox.RunOptions{Timeout: time.Second}), llmsandbox.StatusTimeout)
			settles(t, func() error {
				for _, p := range s.processes(t, sb.ID()) {
					if !own[p.PID] {
						return fmt.Errorf("left of the run: %+v", p)
					}
				}
				return nil
			})
		})
	}
}
