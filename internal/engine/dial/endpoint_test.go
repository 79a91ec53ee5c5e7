//go:build unix

package dial

import (
	"net"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/moby/moby/client"
)

// socketPath is a short path for a socket.
func socketPath(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "dial")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	return filepath.Join(dir, "s")
}

func serveUnix(t *testing.T, path string) {
	t.Helper()
	l, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	s := httptest.NewUnstartedServer(engineAPI(t))
	if err := s.Listener.Close(); err != nil {
		t.Fatal(err)
	}
	s.Listener = l
	s.Start()
	t.Cleanup(s.Close)
}

func TestUnixSocket(t *testing.T) {
	path := socketPath(t)
	e := Endpoint{Host: "unix://" + path, Hints: testHints}
	// The client is made before there is anything to connect to: making it connects to nothing.
	c, err := e.NewClient()
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	serveUnix(t, path)
	if _, err := c.Ping(t.Context(), client.PingOptions{}); err != nil {
		t.Fatal(err)
	}
	if err := ping(t, e); err != nil {
		t.Fatal(err)
	}
	echo(t, e)
	if err := e.Connect(t.Context()); err != nil {
		t.Error(err)
	}
}

func TestUnixSocketThatFails(t *testing.T) {
	for _, c := range []struct {
		name string
		make func(t *testing.T, path string)
		kind Kind
		word string
	}{
		{"missing", func(*testing.T, string) {}, NoSocket, "there is no such socket"},
		{"a file", func(t *testing.T, path string) {
			if err := os.WriteFile(path, nil, 0o600); err != nil {
				t.Fatal(err)
			}
		}, NoSocket, "no socket"},
		{"left behind", func(t *testing.T, path string) {
			l, err := net.ListenUnix("unix", &net.UnixAddr{Name: path})
			if err != nil {
				t.Fatal(err)
			}
			l.SetUnlinkOnClose(false)
			if err := l.Close(); err != nil {
				t.Fatal(err)
			}
		}, NoAnswer, "the engine has ended"},
	} {
		t.Run(c.name, func(t *testing.T) {
			path := socketPath(t)
			c.make(t, path)
			e := Endpoint{Host: "unix://" + path, Hints: testHints}
			wantError(t, ping(t, e), c.kind, c.word, "START")
			wantError(t, e.Connect(t.Context()), c.kind, c.word, "START")
		})
	}
}

// TestUnixSocketOfAnother runs itself as another user, who may not open the socket.
func TestUnixSocketOfAnother(t *testing.T) {
	const variable = "DIAL_TEST_SOCKET"
	if path := os.Getenv(variable); path != "" {
		wantError(t, ping(t, Endpoint{Host: "unix://" + path, Hints: testHints}), Permission,
			"belongs to user root and group root", "the caller is uid 65534", "ACCESS")
		return
	}
	if os.Geteuid() != 0 {
		t.Skip("needs root to become another user")
	}
	path := socketPath(t)
	serveUnix(t, path)
	for name, mode := range map[string]os.FileMode{filepath.Dir(path): 0o755, path: 0o600} {
		if err := os.Chmod(name, mode); err != nil {
			t.Fatal(err)
		}
	}
	// Another user can start a file that it may read, which this program's directory may forbid.
	program := filepath.Join(filepath.Dir(path), "test")
	data, err := os.ReadFile(os.Args[0])
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(program, data, 0o755); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(program, "-test.run=^TestUnixSocketOfAnother$", "-test.v")
	cmd.Dir = "/"
	cmd.Env = append(os.Environ(), variable+"="+path)
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
	out, err := cmd.CombinedOutput()
	if err != nil || !strings.Contains(string(out), "--- PASS") {
		t.Errorf("as another user: %v, want no error, out containing \"--- PASS\"\n%s", err, out)
	}
}

func TestHostsThatCannotBeUsed(t *testing.T) {
	for host, word := range map[string]string{
		"":                                    "no form like",
		"/var/run/docker.sock":                "no form like",
		"unix://":                             "no form like",
		"fd://":                               "no form like",
		"fd://3":                              `"fd" is no way`,
		"unix:///" + strings.Repeat("x", 200): "too long",
		"tcp://host":                          "a host and a port",
		"tcp://:2375":                         "a host and a port",
		"tcp://user@host:2375":                "a user",
		"tcp://host:2375?x=y":                 "a query",
		"ssh://":                              "no form like",
		"ssh://user:secret@host":              "password",
		"ssh://host?x":                        "query",
		"npipe:////./pipe/docker_engine":      "Windows only",
	} {
		c, err := Endpoint{Host: host, Hints: testHints, SSH: SSH{Remote: func(string) []string { return []string{"x"} }}}.NewClient()
		if err == nil {
			t.Errorf("%q gave a client, want an error", host)
			if err := c.Close(); err != nil {
				t.Error(err)
			}
			continue
		}
		if !strings.Contains(err.Error(), word) {
			t.Errorf("%q: %v, which lacks %q", host, err, word)
		}
		if strings.Contains(err.Error(), "secret") {
			t.Errorf("%v shows a password, want an error without \"secret\"", err)
		}
	}
}
