//go:build unix

package dial

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// standIn puts a shell script in the place of the ssh program. That the real one works
// is shown where there is a real engine behind it, in backend/docker.
func standIn(t *testing.T, script string) (arguments string) {
	t.Helper()
	dir := t.TempDir()
	arguments = filepath.Join(dir, "arguments")
	script = "#!/bin/sh\nprintf '%s\\n' \"$@\" > " + arguments + "\n" + script
	if err := os.WriteFile(filepath.Join(dir, "ssh"), []byte(script), 0o755); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", dir+":"+os.Getenv("PATH"))
	return arguments
}

func dialStdio(socket string) []string { return []string{"engine", "--socket", socket, "dial-stdio"} }

func TestSSHArgumentsWithAStandIn(t *testing.T) {
	for _, c := range []struct {
		host  string
		flags []string
		want  string
	}{
		{"ssh://host", nil, "-o|ConnectTimeout=30|-T|--|host|engine --socket '' dial-stdio"},
		{"ssh://me@host:22/run/it's.sock", nil, `-l|me|-p|22|-o|ConnectTimeout=30|-T|--|host|engine --socket "/run/it's.sock" dial-stdio`},
		{"ssh://host/", []string{"-i", "key"}, "-o|ConnectTimeout=30|-T|-i|key|--|host|engine --socket '' dial-stdio"},
		{"ssh://[::1]:2222/s", nil, "-p|2222|-o|ConnectTimeout=30|-T|--|::1|engine --socket /s dial-stdio"},
	} {
		arguments := standIn(t, "exit 3\n")
		e := Endpoint{Host: c.host, SSH: SSH{Remote: dialStdio, Flags: c.flags}, Hints: testHints}
		if err := ping(t, e); err == nil {
			t.Fatalf("%s: no error, want an error", c.host)
		}
		got, err := os.ReadFile(arguments)
		if err != nil {
			t.Fatal(err)
		}
		if joined := strings.Join(strings.Split(strings.TrimSpace(string(got)), "\n"), "|"); joined != c.want {
			t.Errorf("%s: ssh got %s\nwant %s", c.host, joined, c.want)
		}
	}
}

func TestSSHThatFailsWithAStandIn(t *testing.T) {
	e := Endpoint{Host: "ssh://host", SSH: SSH{Remote: dialStdio}, Hints: testHints}
	t.Run("with words", func(t *testing.T) {
		standIn(t, "echo 'me@host: Permission denied (publickey).' >&2; exit 255\n")
		wantError(t, ping(t, e), SSHFailed, "Permission denied (publickey)", "in a terminal")
	})
	t.Run("with words that the client knows", func(t *testing.T) {
		standIn(t, "echo 'dial unix /run/s: connect: connection refused' >&2; exit 1\n")
		wantError(t, ping(t, e), SSHFailed, "/run/s", "refused")
	})
	t.Run("without words", func(t *testing.T) {
		standIn(t, "exec 0<&-; exit 1\n")
		wantError(t, ping(t, e), SSHFailed, "no message")
	})
	t.Run("no program", func(t *testing.T) {
		t.Setenv("PATH", t.TempDir())
		wantError(t, ping(t, e), SSHFailed, "no ssh program", "install")
	})
}

// TestSSHThatFailsTellsAll: a request is written and its answer read at once, and each of the
// two has to learn why ssh ended, whichever comes first.
func TestSSHThatFailsTellsAll(t *testing.T) {
	standIn(t, "echo 'me@host: Permission denied' >&2; exit 255\n")
	e := Endpoint{Host: "ssh://host", SSH: SSH{Remote: dialStdio}, Hints: testHints}
	open, _, err := e.opener()
	if err != nil {
		t.Fatal(err)
	}
	conn, err := open(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		_, err := conn.Read(make([]byte, 1))
		wantError(t, err, SSHFailed, "Permission denied")
	}
	_, err = conn.Write([]byte("x"))
	wantError(t, err, SSHFailed, "Permission denied")
	if err := conn.Close(); err != nil {
		t.Error(err)
	}
}
