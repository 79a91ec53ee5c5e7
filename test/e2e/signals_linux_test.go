package e2e

import (
	"strings"
	"testing"

	"github.com/llmsandbox/llmsandbox"
)

// takeTimers makes timers until the kernel has no more, tells whether they were few, and
// keeps them.
const takeTimers = `
import ctypes, platform, time
libc, n = ctypes.CDLL(None), 0
create = 222 if platform.machine() == "x86_64" else 107
while n < 1000000 and libc.syscall(create, 1, None, ctypes.byref(ctypes.c_int())) == 0:
    n += 1
print("few" if 0 < n <= 1024 else n, flush=True)
time.sleep(60)
`

// The kernel counts the timers and waiting signals of all of a user's sandboxes together.
// One that takes what it can get keeps no other from being opened.
func TestAbuse20Timers(t *testing.T) {
	bad := open(t, llmsandbox.Options{})
	for e, err := range bad.Stream(testContext(t), takeTimers, nil) {
		if err != nil {
			t.Fatal(err)
		}
		if e.Kind != llmsandbox.EventStdout {
			t.Fatalf("it ended: %+v, want Kind = EventStdout", e.Result)
		}
		if strings.TrimSpace(string(e.Data)) != "few" { // its line's end may come on its own
			t.Errorf("it has taken %s timers, want strings.TrimSpace(string(e.Data)) = \"few\"", e.Data)
		}
		good := open(t, llmsandbox.Options{})
		wantStdout(t, run(t, good, "print('unharmed')", nil), "unharmed\n")
		return // which ends it
	}
	t.Error("the program printed nothing, want \"few\"")
}
