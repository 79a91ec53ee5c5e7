package unixsocket

import (
	"errors"
	"io"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
)

// connectVariable has the test's program connect to a socket, and print what it reads.
const connectVariable = "TEST_CONNECT"

func TestMain(m *testing.M) {
	path := os.Getenv(connectVariable)
	if path == "" {
		os.Exit(m.Run())
	}
	c, err := net.Dial("unix", path)
	if err == nil {
		_, err = io.Copy(os.Stdout, c)
	}
	if err != nil && !errors.Is(err, syscall.ECONNRESET) {
		os.Stderr.WriteString(err.Error())
		os.Exit(1)
	}
}

func directory(t *testing.T) string {
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
	return dir
}

// greet says hello to all who connect, until the test ends.
func greet(t *testing.T, path string) net.Listener {
	t.Helper()
	l, err := Listen(path)
	if err != nil {
		t.Fatal(err)
	}
	var done sync.WaitGroup
	done.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			_, _ = io.WriteString(c, "hello") // Listen connects too, and does not read
			c.Close()
		}
	})
	t.Cleanup(func() {
		if err := l.Close(); err != nil {
			t.Error(err)
		}
		done.Wait()
	})
	return l
}

func read(t *testing.T, path string) string {
	t.Helper()
	c, err := net.Dial("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	text, err := io.ReadAll(c)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func TestListen(t *testing.T) {
	path := filepath.Join(directory(t), "s")
	t.Run("used", func(t *testing.T) {
		greet(t, path)
		if got := read(t, path); got != "hello" {
			t.Errorf("got %q, want hello", got)
		}
		if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("the socket: %v, %v, want mode 0600", info, err)
		}
		if l, err := Listen(path); err == nil || !strings.Contains(err.Error(), "another process listens") {
			t.Errorf("a second listener: %v, %v, want an error that says so", l, err)
		}
		if got := read(t, path); got != "hello" {
			t.Errorf("after that: got %q, want hello", got)
		}
	})
	if _, err := os.Lstat(path); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("after the end: %v, want that the socket is removed", err)
	}
	abandoned, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	if err != nil {
		t.Fatal(err)
	}
	abandoned.SetUnlinkOnClose(false)
	if err := abandoned.Close(); err != nil {
		t.Fatal(err)
	}
	greet(t, path)
	if got := read(t, path); got != "hello" {
		t.Errorf("in place of an abandoned socket: got %q, want hello", got)
	}
}

// TestListenAtOnce: of many that find an abandoned socket, one listens.
func TestListenAtOnce(t *testing.T) {
	path := filepath.Join(directory(t), "s")
	for range 20 {
		abandoned, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
		if err != nil {
			t.Fatal(err)
		}
		abandoned.SetUnlinkOnClose(false)
		if err := abandoned.Close(); err != nil {
			t.Fatal(err)
		}
		const many = 8
		found := make(chan net.Listener, many)
		var all sync.WaitGroup
		for range many {
			all.Go(func() {
				if l, err := Listen(path); err == nil {
					found <- l
				}
			})
		}
		all.Wait()
		close(found)
		if n := len(found); n != 1 {
			t.Errorf("%d listen, want 1", n)
		}
		for l := range found {
			if err := l.Close(); err != nil {
				t.Error(err)
			}
		}
	}
}

func TestListenRefused(t *testing.T) {
	dir := directory(t)
	open := filepath.Join(dir, "open")
	if err := os.Mkdir(open, 0o755); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(dir, "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ name, path, want string }{
		{"others enter", filepath.Join(open, "s"), "other users can enter"},
		{"no directory", filepath.Join(dir, "none", "s"), "no such file or directory"},
		{"a file", file, "is no socket"},
		{"too long", filepath.Join(dir, strings.Repeat("x", 108)), "at most 107 bytes"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if l, err := Listen(c.path); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, %v, want an error with %q", l, err, c.want)
			}
		})
	}
	if _, err := os.Stat(file); err != nil {
		t.Errorf("the file: %v, want that it is there", err)
	}
}

// TestOtherUser: a user who can reach the socket nevertheless gets nothing.
func TestOtherUser(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("this test needs root, for another user")
	}
	dir := directory(t)
	path := filepath.Join(dir, "s")
	greet(t, path)
	program := filepath.Join(dir, "connect") // that other users may run
	self, err := os.ReadFile("/proc/self/exe")
	if err == nil {
		err = os.WriteFile(program, self, 0o700)
	}
	for name, mode := range map[string]os.FileMode{dir: 0o755, path: 0o666, program: 0o755} {
		if err == nil {
			err = os.Chmod(name, mode)
		}
	}
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		uid  uint32
		want string
	}{{0, "hello"}, {65534, ""}} {
		cmd := exec.Command(program)
		cmd.Env = append(os.Environ(), connectVariable+"="+path)
		cmd.Dir = "/"
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: c.uid, Gid: c.uid}}
		if out, err := cmd.CombinedOutput(); err != nil || string(out) != c.want {
			t.Errorf("uid %d: %v: got %q, want %q", c.uid, err, out, c.want)
		}
	}
}
