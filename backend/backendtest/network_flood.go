package backendtest

import (
	"errors"
	"testing"
	"time"

	"github.com/llmsandbox/llmsandbox"
)

// networkFlood opens connections without end (21): this process's resources are bounded,
// the sandbox answers, and there is a network again afterwards.
func (s *suite) networkFlood(t *testing.T) {
	h := newHostServers(t)
	sb := s.open(t, llmsandbox.Options{Network: h.network(t), Env: h.env(t)})
	needs(t, sb, "network")
	up := newSignal("up\n")
	ended := make(chan struct{})
	var res *llmsandbox.Result
	go func() {
		defer close(ended)
		var err error
		res, err = sb.Run(testContext(t), pythonNetwork+`
import resource
resource.setrlimit(resource.RLIMIT_NOFILE, (resource.getrlimit(resource.RLIMIT_NOFILE)[1],) * 2)
conns = []
for i in range(600):
    try:
        c = proxy()
        c.settimeout(0.01)
        c.sendall(b"GET http://web.test/ HTTP/1.1\r\n")
        conns.append(c)
    except OSError:
        pass
print("up", flush=True)
sys.stdin.read()
`, &llmsandbox.RunOptions{Stdout: up, Timeout: time.Minute, Stdin: blockedReader{done: up.released}})
		if err != nil {
			t.Error(err)
		}
	}()
	up.wait(t, ended)
	if n := openDescriptors(t); n > 2000 {
		t.Errorf("this process has %d descriptors open, want at most 2000", n)
	}
	answers(t, sb)
	up.release()
	<-ended
	if res != nil {
		wantExit(t, res, 0)
	}
	settles(t, func() error {
		res := run(t, sb, pythonNetwork+`print(get(web + "/hello").split()[0])`, nil)
		if res.Stdout != "hello\n" {
			return errors.New(res.Stdout + res.Stderr)
		}
		return nil
	})
}
