package e2e

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/llmsandbox/llmsandbox"
)

func TestAcceptance19to21Timeout(t *testing.T) {
	ctx := testContext(t)
	sb := open(t, llmsandbox.Options{})
	start := time.Now()
	res := run(t, sb, "while True: pass", &llmsandbox.RunOptions{Timeout: 2 * time.Second})
	took := time.Since(start)
	wantStatus(t, res, llmsandbox.StatusTimeout)
	if took > 3*time.Second || took < 2*time.Second {
		t.Errorf("took %v, want a little over 2 s", took)
	}
	if res.ExitCode != nil {
		t.Errorf("exit code %d, though the program never exited", *res.ExitCode)
	}
	if !strings.Contains(res.Error, "2s") {
		t.Errorf("error %q does not name the timeout", res.Error)
	}
	left, err := sb.Shell(ctx, "cat /proc/[0-9]*/comm", nil) // 20: already gone
	if err != nil || strings.Contains(left.Stdout, "python") {
		t.Errorf("after the timeout: %v, processes %q", err, left.Stdout)
	}
	res = run(t, sb, "print(1)", nil) // 21
	wantStdout(t, res, "1\n")
}

func TestAcceptance22PerRunTimeoutWins(t *testing.T) {
	sb := open(t, llmsandbox.Options{Limits: llmsandbox.Limits{Timeout: time.Second}})
	wantStatus(t, run(t, sb, "import time; time.sleep(30)", nil), llmsandbox.StatusTimeout)
	wantExit(t, run(t, sb, "import time; time.sleep(1.5)", &llmsandbox.RunOptions{Timeout: 20 * time.Second}), 0)
	wantStatus(t, run(t, sb, "import time; time.sleep(30)", &llmsandbox.RunOptions{Timeout: 100 * time.Millisecond}), llmsandbox.StatusTimeout)
}

func TestAcceptance23FractionalTimeout(t *testing.T) {
	sb := open(t, llmsandbox.Options{})
	start := time.Now()
	wantStatus(t, run(t, sb, "import time; time.sleep(30)", &llmsandbox.RunOptions{Timeout: 500 * time.Millisecond}), llmsandbox.StatusTimeout)
	if d := time.Since(start); d > 1500*time.Millisecond {
		t.Errorf("took %v for a timeout of 0.5 s", d)
	}
}

func TestAcceptance24Lifetime(t *testing.T) {
	ctx := testContext(t)
	sb := open(t, llmsandbox.Options{Lifetime: time.Second})
	select {
	case <-sb.Done():
	case <-time.After(10 * time.Second):
		t.Fatal("the sandbox outlives its lifetime of 1 s")
	}
	if _, err := sb.Run(ctx, "print(1)", nil); !errors.Is(err, llmsandbox.ErrClosed) {
		t.Errorf("run after the lifetime: %v, want ErrClosed", err)
	}
	if _, err := llmsandbox.Attach(ctx, sb.ID(), llmsandbox.AttachOptions{}); !errors.Is(err, llmsandbox.ErrNotFound) {
		t.Errorf("attach after the lifetime: %v, want ErrNotFound", err)
	}
}

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

func TestAcceptance25NothingOutlivesATimeout(t *testing.T) {
	for name, code := range escapes {
		t.Run(name, func(t *testing.T) {
			sb := open(t, llmsandbox.Options{})
			start := time.Now()
			wantStatus(t, run(t, sb, code, &llmsandbox.RunOptions{Timeout: time.Second}), llmsandbox.StatusTimeout)
			if d := time.Since(start); d > 4*time.Second {
				t.Errorf("took %v for a timeout of 1 s", d)
			}
			left, err := sb.Shell(testContext(t), "cat /proc/[0-9]*/comm", nil)
			if err != nil || strings.Contains(left.Stdout, "sleep") || strings.Contains(left.Stdout, "python") {
				t.Errorf("after the timeout: %v, processes %q", err, left.Stdout)
			}
		})
	}
}

func TestAcceptance26PartialOutput(t *testing.T) {
	sb := open(t, llmsandbox.Options{})
	var live strings.Builder
	res := run(t, sb, "import time; print('before', flush=True); time.sleep(300)",
		&llmsandbox.RunOptions{Timeout: time.Second, Stdout: &live})
	wantStatus(t, res, llmsandbox.StatusTimeout)
	if res.Stdout != "before\n" || live.String() != "before\n" {
		t.Errorf("stdout %q, live %q, want what was printed before the timeout", res.Stdout, live.String())
	}
}
