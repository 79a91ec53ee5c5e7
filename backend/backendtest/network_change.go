package backendtest

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/llmsandbox/llmsandbox"
)

// networkChanges changes what an open sandbox may reach.
func (s *suite) networkChanges(t *testing.T) {
	ctx := testContext(t)
	h := newHostServers(t)
	sb := s.open(t, llmsandbox.Options{Env: h.env(t)})
	needs(t, sb, "network")
	try := func(want string) {
		t.Helper()
		res := run(t, sb, pythonNetwork+`print(get(web + "/hello"))`, nil)
		if !strings.HasPrefix(res.Stdout, want) {
			t.Fatalf("%s%s\nwant %q", res.Stdout, res.Stderr, want)
		}
	}
	try("failed ")
	change := func(n llmsandbox.Network) {
		t.Helper()
		if err := sb.SetNetwork(ctx, n); err != nil {
			t.Fatal(err)
		}
	}
	change(h.network(t))
	try("hello from web.test")
	elsewhere := h.network(t)
	elsewhere.Allow = []string{"other.test:1"}
	change(elsewhere)
	try("403 ")
	change(h.network(t))
	try("hello from web.test")

	// A connection that is open when its host is no longer allowed is cut.
	up, ended := newSignal("up\n"), make(chan struct{})
	var changed sync.WaitGroup
	changed.Go(func() {
		up.wait(t, ended)
		if err := sb.SetNetwork(ctx, elsewhere); err != nil {
			t.Error(err)
		}
	})
	defer changed.Wait()
	defer close(ended)
	res := run(t, sb, pythonNetwork+`
code, c = socks("echo.test", echo)
c.sendall(b"\0")
print("up" if c.recv(1) else "down", flush=True)
try:
    c.settimeout(60)
    print("cut", c.recv(1))
except ConnectionError as e:
    print("cut", b"")
`, &llmsandbox.RunOptions{Stdout: up})
	wantStdout(t, res, "up\ncut b''\n")
	if a := attempted(t, res.Network, "echo.test", "socks5"); !a.Allowed || a.Reason == "" {
		t.Errorf("%+v: want why it was cut", a)
	}
	change(llmsandbox.Network{})
	try("failed ")
	change(llmsandbox.Network{Mode: llmsandbox.NetworkNone})
	change(h.network(t))
	try("hello from web.test")
	if err := sb.SetNetwork(ctx, llmsandbox.Network{Mode: "some"}); !errors.Is(err, llmsandbox.ErrInvalid) {
		t.Errorf("a mode of no meaning: %v, want ErrInvalid", err)
	}
	try("hello from web.test")

	if _, lacks := s.Lacks[Servers]; lacks {
		return
	}
	// Code that takes the proxy's place is reported, and harms only itself.
	change(llmsandbox.Network{})
	res = run(t, sb, `import subprocess, sys
p = subprocess.Popen([sys.executable, "-c", "import socket, time; s = socket.create_server(('127.0.0.1', 28471)); print(1, flush=True); time.sleep(300)"], stdout=subprocess.PIPE)
print(p.stdout.readline())`, &llmsandbox.RunOptions{KeepChildren: true})
	wantStdout(t, res, "b'1\\n'\n")
	if err := sb.SetNetwork(ctx, h.network(t)); err == nil || !strings.Contains(err.Error(), "28471") {
		t.Errorf("with the proxy's port taken: %v, want an error that names it", err)
	}
	answers(t, sb)
}

// networkOfAttached: a handle that attaches uses the network that the opener serves, until it
// takes it over.
func (s *suite) networkOfAttached(t *testing.T) {
	ctx := testContext(t)
	h := newHostServers(t)
	sb := s.open(t, llmsandbox.Options{Network: h.network(t), Env: h.env(t)})
	needs(t, sb, "network")
	same := s.attach(t, sb)
	wantStdout(t, run(t, same, pythonNetwork+`print(get(web + "/hello").split()[0])`, nil), "hello\n")
	if err := same.SetNetwork(ctx, llmsandbox.Network{}); !errors.Is(err, llmsandbox.ErrInvalid) {
		t.Errorf("no network, by an attached handle: %v, want ErrInvalid", err)
	}
	if len(h.hooked()) == 0 {
		t.Error("the opener's hook got no attempt, want one")
	}
	if _, err := same.Network(ctx); !errors.Is(err, llmsandbox.ErrUnsupported) {
		t.Errorf("the network by an attached handle: %v, want ErrUnsupported", err)
	}
	if err := same.SetNetwork(ctx, llmsandbox.Network{Mode: llmsandbox.NetworkAllow, Allow: []string{"other.example"}}); err != nil {
		t.Fatalf("take over: %v", err)
	}
	settles(t, func() error {
		if err := sb.SetNetwork(ctx, h.network(t)); !errors.Is(err, llmsandbox.ErrDetached) {
			return fmt.Errorf("the network by the handle that had it: %v, want ErrDetached", err)
		}
		return nil
	})
	res := run(t, same, pythonNetwork+`print(get(web + "/hello"))`, nil)
	if len(res.Network) != 1 || res.Network[0].Allowed {
		t.Errorf("attempts after the takeover %+v, want one that is refused; %s", res.Network, describe(res))
	}
}
