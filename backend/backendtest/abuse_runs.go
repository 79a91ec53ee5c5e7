package backendtest

import (
	"io"
	"testing"

	"github.com/llmsandbox/llmsandbox"
)

// abuse84WriteToAnotherRun tries to write to the output of another run.
func (s *suite) abuse84WriteToAnotherRun(t *testing.T) {
	sb := s.open(t, llmsandbox.Options{})
	needs(t, sb, "landlock") // it keeps runs of one uid apart
	type outcome struct {
		res *llmsandbox.Result
		err error
	}
	victim := make(chan outcome, 1)
	started := make(chan struct{})
	stdin, end := io.Pipe()
	go func() {
		res, err := sb.Run(testContext(t), `
import sys
print("started", flush=True)
sys.stdin.read()
print("victim")`, &llmsandbox.RunOptions{Stdin: stdin, Stdout: &first{started: started}})
		victim <- outcome{res, err}
	}()
	<-started
	res := run(t, sb, attempts+`
for pid in os.listdir("/proc"):
    if not pid.isdigit() or int(pid) == os.getpid():
        continue
    for fd in range(8): # their numbers may be seen, since the uid is the same, but not what they are
        attempt("%s fd %d link" % (pid, fd), lambda: os.readlink("/proc/%s/fd/%d" % (pid, fd)))
        attempt("%s fd %d" % (pid, fd), lambda: os.write(os.open("/proc/%s/fd/%d" % (pid, fd), os.O_WRONLY | os.O_NONBLOCK), b"forged\n"))
    for name in ("environ", "mem", "maps"):
        attempt(pid + " " + name, lambda: open("/proc/%s/%s" % (pid, name), "rb").read(16))
print("end")`, nil)
	end.Close()
	v := <-victim
	wantNothingReached(t, res)
	if v.err != nil {
		t.Fatal(v.err)
	}
	wantExit(t, v.res, 0)
	wantStdout(t, v.res, "started\nvictim\n")
}

// first closes started at the first output.
type first struct {
	started chan struct{}
	seen    bool
}

func (w *first) Write(p []byte) (int, error) {
	if !w.seen {
		w.seen = true
		close(w.started)
	}
	return len(p), nil
}
