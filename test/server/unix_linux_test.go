package server

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
)

// socketIn is the path of a socket in a directory of the test's own.
func socketIn(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "lsb") // its path must be short for sockets
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

// askAt sends a request to a server on a Unix socket, or on TCP where socket is empty, and returns the answer's status and body.
func askAt(t *testing.T, socket, key, method, url, body string) (int, string) {
	t.Helper()
	transport := &http.Transport{}
	if socket != "" {
		transport.DialContext = func(ctx context.Context, _, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, "unix", socket)
		}
	}
	defer transport.CloseIdleConnections()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, method, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/json")
	if key != "" {
		r.Header.Set("Authorization", "Bearer "+key)
	}
	res, err := (&http.Client{Transport: transport}).Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return res.StatusCode, string(text)
}

// TestUnixSocket: a server on a Unix socket asks for a key as one on the loopback does, replaces the socket of a server that was killed, and not that of
// one that serves.
func TestUnixSocket(t *testing.T) {
	m, socket := newMachine(t), socketIn(t)
	s := m.start("--listen", "unix:"+socket)
	if s.address != "unix:"+socket || s.key == "" {
		t.Errorf("it serves on %s with the key %q, want the socket and a key", s.address, s.key)
	}
	s.end(syscall.SIGKILL)
	s = m.start("--listen", "unix:"+socket)
	for _, c := range []struct {
		key, url string
		want     int
	}{{s.key, "http://localhost/v1/languages", http.StatusOK}, {"", "http://localhost/v1/languages", http.StatusUnauthorized}, {s.key, "http://example.org/v1/languages", http.StatusForbidden}} {
		if status, body := askAt(t, socket, c.key, http.MethodGet, c.url, ""); status != c.want {
			t.Errorf("%s with the key %q: %d %s, want %d", c.url, c.key, status, body, c.want)
		}
	}
	if _, text, err := m.run("serve", "--listen", "unix:"+socket); err == nil || !strings.Contains(text, "another process listens there") {
		t.Errorf("a second server: %v: %s, want an error", err, text)
	}
	s.end(syscall.SIGTERM)
	if _, err := os.Lstat(socket); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the socket after the end: %v, want that it is removed", err)
	}
}

// TestUntilStdinCloses: a server that belongs to a program ends when the program is killed, with its sandboxes and what runs in them, and keeps nothing.
func TestUntilStdinCloses(t *testing.T) {
	for _, c := range []struct {
		name    string
		listen  func(*testing.T) string
		needKey bool
	}{
		{"unix", func(t *testing.T) string { return "unix:" + socketIn(t) }, false},
		{"tcp", func(*testing.T) string { return "127.0.0.1:0" }, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			m := newMachine(t)
			stdin, owned, err := os.Pipe()
			if err != nil {
				t.Fatal(err)
			}
			owner := exec.Command("sleep", "infinity")
			owner.ExtraFiles = []*os.File{owned}
			if err := owner.Start(); err != nil {
				t.Fatal(err)
			}
			defer owner.Process.Kill() //nolint:errcheck // it has ended
			server := exec.Command(command, "serve", "--until-stdin-closes", "--listen", c.listen(t), "--best-effort", "--warm", "1")
			server.Stdin, server.Stderr = stdin, os.Stderr
			// As a machine has them that serves others.
			server.Env = append(slices.Clone(m.env), "LLMSANDBOX_DATABASE=postgres://localhost:1/none", "LLMSANDBOX_MAX_IMAGES=4", "LLMSANDBOX_TLS_CERT=/none", "LLMSANDBOX_E2B=true", "LLMSANDBOX_PROJECT_CPU_PER_DAY=1h")
			stdout, err := server.StdoutPipe()
			if err == nil {
				err = server.Start()
			}
			if err = errors.Join(err, stdin.Close(), owned.Close()); err != nil {
				t.Fatal(err)
			}
			defer server.Process.Kill() //nolint:errcheck // it has ended
			lines := bufio.NewReader(stdout)
			line, err := lines.ReadString('\n')
			var at struct{ URL, Key string }
			if err = errors.Join(err, json.Unmarshal([]byte(line), &at)); err != nil || (at.Key != "") != c.needKey {
				t.Fatalf("it says %q: %v, want where it serves, and a key: %t", line, err, c.needKey)
			}
			ask := func(want int, path, body string) (id string) {
				t.Helper()
				url, socket := at.URL, ""
				if path, ok := strings.CutPrefix(url, "unix:"); ok {
					url, socket = "http://localhost", path
				}
				status, text := askAt(t, socket, at.Key, http.MethodPost, url+path, body)
				if status != want {
					t.Fatalf("%s: %d %s, want %d", path, status, text, want)
				}
				var made struct{ ID any }
				if err := json.Unmarshal([]byte(text), &made); err != nil {
					t.Fatal(err)
				}
				id, _ = made.ID.(string)
				return id
			}
			id := ask(http.StatusCreated, "/v1/sandboxes", `{"language": "bash"}`)
			ask(http.StatusCreated, "/v1/sandboxes/"+id+"/processes", `{"argv": ["sleep", "1000"]}`)
			ask(http.StatusCreated, "/v1/sandboxes/"+id+"/kernels", `{}`)
			if err := owner.Process.Kill(); err != nil {
				t.Fatal(err)
			}
			_ = owner.Wait()                                                 // it was killed
			if rest, err := io.ReadAll(lines); err != nil || len(rest) > 0 { // until the server has ended
				t.Errorf("it says more: %q, %v", rest, err)
			}
			if err := server.Wait(); err != nil {
				t.Errorf("the server: %v, want that it ends well", err)
			}
			if out, text, err := m.run("ls", "--quiet"); err != nil || out != "" {
				t.Errorf("%v: %s%s, want no sandbox", err, out, text)
			}
			if out, text, err := m.run("serve", "key", "list"); err != nil || strings.Count(out, "\n") != 1 {
				t.Errorf("%v: %s%s, want no key", err, out, text)
			}
		})
	}
}

// TestUntilStdinClosesRefused: a server that cannot belong to a program does not begin.
func TestUntilStdinClosesRefused(t *testing.T) {
	m := newMachine(t)
	for _, c := range []struct {
		pipe  bool
		flags []string
		want  string
	}{
		{false, nil, "standard input is no pipe"},
		{true, []string{"--listen", "0.0.0.0:0"}, "others reach that address"},
		{true, []string{"--max-images", "1"}, "--max-images and --until-stdin-closes exclude each other"},
		{true, []string{"--listen", "unix:"}, "needs the path of a socket"},
		{true, []string{"--listen", "unix:/tmp/s"}, "other users can enter or write"},
	} {
		cmd := exec.Command(command, append([]string{"serve", "--until-stdin-closes", "--best-effort"}, c.flags...)...)
		cmd.Env = m.env
		if c.pipe {
			if _, err := cmd.StdinPipe(); err != nil {
				t.Fatal(err)
			}
		}
		if out, err := cmd.CombinedOutput(); err == nil || !strings.Contains(string(out), c.want) {
			t.Errorf("%q: %v: %s, want an error with %q", c.flags, err, out, c.want)
		}
	}
}
