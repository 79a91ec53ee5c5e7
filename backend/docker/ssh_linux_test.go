package docker

import (
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/llmsandbox/llmsandbox/backend"
	"github.com/llmsandbox/llmsandbox/internal/engine/dial"
	"github.com/llmsandbox/llmsandbox/internal/testengine"
	"github.com/llmsandbox/llmsandbox/internal/testimage"
)

// TestEngineOverSSH reaches a real daemon through the real ssh program and a real sshd.
func TestEngineOverSSH(t *testing.T) {
	programs := map[string]string{}
	for _, name := range []string{"ssh", "sshd", "ssh-keygen", "docker"} {
		path, err := lookPath(name)
		if err != nil {
			testimage.Must(t, testimage.Lack("this test needs "+name+" (apt-get install openssh-server openssh-client docker.io)"))
		}
		programs[name] = path
	}
	fakeHome(t)
	e := testengine.PrivateDocker(t)
	host := sshHost(t, programs)

	o := ClientOptions{Host: host + strings.TrimPrefix(e.Host, "unix://")}
	if err := ask(t, o); err != nil {
		t.Fatal(err)
	}
	var checks []string
	for _, f := range Diagnose(t.Context(), &o) {
		if f.Level == backend.LevelFailure {
			t.Errorf("%+v, want Level != LevelFailure", f)
		}
		checks = append(checks, f.Check)
	}
	if !strings.HasPrefix(strings.Join(checks, " "), "configuration connection answer") {
		t.Errorf("checks %q, want it to begin with \"configuration connection answer\"", checks)
	}
	t.Run("no such socket there", func(t *testing.T) {
		err := ask(t, ClientOptions{Host: host + "/no/such.sock"})
		var failed *dial.Error
		if !errors.As(err, &failed) || failed.Kind != dial.SSHFailed || !strings.Contains(err.Error(), "/no/such.sock") {
			t.Errorf("error %v, want one of ssh", err)
		}
	})
	t.Run("no access", func(t *testing.T) {
		err := ask(t, ClientOptions{Host: strings.Replace(host, "ssh://", "ssh://no-such-user@", 1) + "/x"})
		var failed *dial.Error
		if !errors.As(err, &failed) || failed.Kind != dial.SSHFailed || !strings.Contains(err.Error(), "Permission denied") {
			t.Errorf("error %v, want one of ssh with Permission denied", err)
		}
	})
}

// lookPath finds programs of system administrators too.
func lookPath(name string) (string, error) {
	if path, err := exec.LookPath(name); err == nil {
		return path, nil
	}
	return exec.LookPath("/usr/sbin/" + name)
}

// sshHost configures ssh and sshd for this test alone, and returns an ssh:// host.
func sshHost(t *testing.T, programs map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	me, err := user.Current()
	if err != nil {
		t.Fatal(err)
	}
	if me.Uid == "0" {
		// The directory of sshd's unprivileged half, which its service makes at boot.
		const empty = "/run/sshd"
		if err := os.Mkdir(empty, 0o755); err == nil {
			t.Cleanup(func() {
				if err := os.Remove(empty); err != nil {
					t.Error(err)
				}
			})
		} else if !errors.Is(err, os.ErrExist) {
			t.Fatal(err)
		}
	}
	for _, key := range []string{"host", "user"} {
		if out, err := exec.Command(programs["ssh-keygen"], "-q", "-t", "ed25519", "-N", "", "-f", filepath.Join(dir, key)).CombinedOutput(); err != nil {
			t.Fatalf("ssh-keygen: %v: %s", err, out)
		}
	}
	public, err := os.ReadFile(filepath.Join(dir, "user.pub"))
	if err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(dir, "authorized"), public)
	hostKey, err := os.ReadFile(filepath.Join(dir, "host.pub"))
	if err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(dir, "known"), append([]byte("engine.example "), hostKey...))
	port := serveSSH(t, programs["sshd"], filepath.Join(dir, "sshd_config"))
	write(t, filepath.Join(dir, "sshd_config"), fmt.Appendf(nil,
		"HostKey %s/host\nAuthorizedKeysFile %s/authorized\nStrictModes no\nUsePAM no\nPasswordAuthentication no\nKbdInteractiveAuthentication no\nPermitRootLogin prohibit-password\nPidFile none\nSetEnv PATH=%s:/usr/bin:/bin\n",
		dir, dir, filepath.Dir(programs["docker"])))
	write(t, filepath.Join(dir, "ssh_config"), fmt.Appendf(nil,
		"Host engine.example\nHostName 127.0.0.1\nHostKeyAlias engine.example\nIdentityFile %s/user\nIdentitiesOnly yes\nUserKnownHostsFile %s/known\nGlobalKnownHostsFile /dev/null\nBatchMode yes\nLogLevel ERROR\n",
		dir, dir))
	// The user's own configuration is not read from HOME, so ssh gets it as an argument.
	script := fmt.Sprintf("#!/bin/sh\nexec %s -F %s/ssh_config \"$@\"\n", programs["ssh"], dir)
	if err := os.WriteFile(filepath.Join(dir, "ssh"), []byte(script), 0o755); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", dir+":"+os.Getenv("PATH"))
	return "ssh://engine.example:" + port
}

// serveSSH runs an sshd for each connection to a port of loopback, until the test ends.
func serveSSH(t *testing.T, sshd, config string) (port string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var running sync.WaitGroup
	serve := func(conn net.Conn) {
		defer conn.Close()
		socket, err := conn.(*net.TCPConn).File()
		if err != nil {
			t.Error(err)
			return
		}
		defer socket.Close()
		cmd := exec.Command(sshd, "-i", "-f", config)
		cmd.Stdin, cmd.Stdout = socket, socket
		// How it ends is the client's business: it may have hung up.
		var ended *exec.ExitError
		if err := cmd.Run(); err != nil && !errors.As(err, &ended) {
			t.Error(err)
		}
	}
	running.Go(func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return // closed
			}
			running.Go(func() { serve(conn) })
		}
	})
	t.Cleanup(func() {
		if err := l.Close(); err != nil {
			t.Error(err)
		}
		running.Wait()
	})
	_, port, err = net.SplitHostPort(l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	return port
}
