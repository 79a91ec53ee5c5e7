package backendtest

import (
	"errors"
	"testing"
	"time"

	"github.com/llmsandbox/llmsandbox"
)

// networkAtTheEnd: a connection that a run's end cuts is in its result.
func (s *suite) networkAtTheEnd(t *testing.T) {
	h := newHostServers(t)
	sb := s.open(t, llmsandbox.Options{Network: h.network(t), Env: h.env(t)})
	needs(t, sb, "network")
	res := run(t, sb, pythonNetwork+`
code, c = socks("echo.test", echo)
time.sleep(300)
`, &llmsandbox.RunOptions{Timeout: 5 * time.Second})
	wantStatus(t, res, llmsandbox.StatusTimeout)
	if a := attempted(t, res.Network, "echo.test", "socks5"); !a.Allowed {
		t.Errorf("%+v, want Allowed true", a)
	}
}

// networkAfterALostStream breaks the stream that the network rides on: the next run has
// it again.
func (s *suite) networkAfterALostStream(t *testing.T) {
	h := newHostServers(t)
	sb := s.open(t, llmsandbox.Options{Backend: s.newCutting(t, 60_000, 2), Network: h.network(t), Env: h.env(t)})
	needs(t, sb, "network")
	wantExit(t, run(t, sb, "print('x' * 200_000)", nil), 0)
	settles(t, func() error {
		res := run(t, sb, pythonNetwork+`print(get(web + "/hello").split()[0])`, nil)
		if res.Stdout != "hello\n" {
			return errors.New(res.Stdout + res.Stderr)
		}
		return nil
	})
}
