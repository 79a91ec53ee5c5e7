package server

import (
	"encoding/json"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// TestFirstProcess: a server that is the first process of a container waits for the processes that come to it when their parents have ended, and
// ends as others do.
func TestFirstProcess(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("this test needs root, for a namespace of processes")
	}
	m := newMachine(t)
	first := exec.Command("sh", "-ec", `mount --make-rprivate /; mount -t proc proc /proc; exec "$@"`, "sh", command)
	first.SysProcAttr = &syscall.SysProcAttr{Cloneflags: unix.CLONE_NEWPID | unix.CLONE_NEWNS}
	s := m.startWith(first, "--isolation", "process")
	for range 3 {
		var sb struct{ ID string }
		if status, text := s.ask(s.key, http.MethodPost, "/v1/sandboxes", `{"language": "python"}`); json.Unmarshal([]byte(text), &sb) != nil || status != http.StatusCreated {
			t.Fatalf("%d %s, want a sandbox", status, text)
		}
		id := "/v1/sandboxes/" + sb.ID
		if got := s.stdout(s.ask(s.key, http.MethodPost, id+"/run", `{"code": "print(1)"}`)); got != "1\n" {
			t.Errorf("got %q, want what the code prints", got)
		}
		if status, text := s.ask(s.key, http.MethodDelete, id, ""); status != http.StatusNoContent {
			t.Errorf("%d %s, want that it is removed", status, text)
		}
	}
	for late := time.Now().Add(time.Minute); ; { // they are waited for at any time after their end
		left := zombies(t, first.Process.Pid)
		if len(left) == 0 {
			break
		}
		if time.Now().After(late) {
			t.Fatalf("processes are left that have ended: %s", left)
		}
	}
	s.end(syscall.SIGTERM)
}

var stat = regexp.MustCompile(`^\d+ \((.*)\) (.) (\d+) `)

// zombies are the processes that have ended and that a parent has not waited for.
func zombies(t *testing.T, parent int) (left []string) {
	t.Helper()
	files, err := filepath.Glob("/proc/[0-9]*/stat")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil { // it has ended meanwhile
			continue
		}
		if of := stat.FindSubmatch(text); of != nil && string(of[2]) == "Z" && string(of[3]) == strconv.Itoa(parent) {
			left = append(left, strings.TrimSpace(string(text)))
		}
	}
	return left
}
