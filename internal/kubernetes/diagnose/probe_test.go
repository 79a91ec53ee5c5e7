package diagnose

import (
	"bytes"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"
)

// languages are what start finds in an image.
var languages = []string{"python3", "perl"}

// program is start as in an image that has only the one language.
func program(t *testing.T, language string, args ...string) *exec.Cmd {
	t.Helper()
	path, err := exec.LookPath(language)
	if err != nil {
		t.Fatalf("the test needs %s: %v", language, err)
	}
	bin := t.TempDir()
	// What is found may be a script that needs more of the machine.
	run := fmt.Sprintf("#!/bin/sh\nPATH='%s' exec '%s' \"$@\"\n", os.Getenv("PATH"), path)
	if err := os.WriteFile(filepath.Join(bin, language), []byte(run), 0o700); err != nil {
		t.Fatal(err)
	}
	said := command(start, args...)
	for i := range said { // as the cluster does
		said[i] = strings.ReplaceAll(said[i], "$$", "$")
	}
	c := exec.Command("/bin/sh", said[1:]...)
	c.Env = []string{"PATH=" + bin}
	c.Stderr = os.Stderr
	return c
}

// freePort is a port that no process listens on now.
func freePort(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return strconv.Itoa(l.Addr().(*net.TCPAddr).Port)
}

// TestPrograms: both programs do what doc.go says, and each understands the other.
func TestPrograms(t *testing.T) {
	for _, server := range languages {
		for _, caller := range languages {
			t.Run(server+" and "+caller, func(t *testing.T) {
				port := freePort(t)
				serve := program(t, server, "serve", "right", port)
				if err := serve.Start(); err != nil {
					t.Fatal(err)
				}
				stop := func() { _ = serve.Process.Kill(); _ = serve.Wait() }
				defer stop()
				steps := []string{"must=127.0.0.1", "cut=127.0.0.1", "must=127.0.0.1"}
				if got := call(t, caller, "right", port, 60_000, steps[:1]); !got[0].reached {
					t.Fatalf("the server does not start: %+v, want reached true", got)
				}
				got := call(t, caller, "right", port, 500, steps)
				if !got[0].reached || !got[1].reached || !got[2].reached || got[1].took < 500*time.Millisecond {
					t.Errorf("with a server: %+v, want reached true, took >= 500ms", got)
				}
				if err := program(t, caller, "ready", "right", port).Run(); err != nil {
					t.Errorf("ready: %v", err)
				}
				if err := program(t, caller, "ready", "wrong", port).Run(); err == nil {
					t.Error("a server of another probe is taken for this one's: got no error, want an error")
				}
				stop()
				if got := call(t, caller, "right", port, 300, steps[:2]); got[0].reached || got[1].reached || got[1].took != 0 {
					t.Errorf("without a server: %+v, want reached false, took = 0", got)
				}
			})
		}
	}
}

// call runs a caller with a short period.
func call(t *testing.T, language, token, port string, patience int, steps []string) []step {
	t.Helper()
	var out bytes.Buffer
	c := program(t, language, append([]string{"call", token, port, "20", fmt.Sprint(patience)}, steps...)...)
	c.Stdout = &out
	if err := c.Run(); err != nil {
		t.Fatal(err)
	}
	got, err := parse(out.String(), steps)
	if err != nil {
		t.Fatal(err)
	}
	return got
}

// TestSilentServer: a listener that says nothing is not the probe's, and not waited for long.
func TestSilentServer(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	port := strconv.Itoa(l.Addr().(*net.TCPAddr).Port)
	for _, language := range languages {
		begin := time.Now()
		if err := program(t, language, "ready", "token", port).Run(); err == nil {
			t.Errorf("%s: reached, want an error", language)
		}
		if took := time.Since(begin); took > 20*time.Second {
			t.Errorf("%s: took %v, want at most 20s", language, took)
		}
	}
}

func TestNoProgram(t *testing.T) {
	c := program(t, "perl", "ready", "t", "1")
	c.Env = []string{"PATH=" + t.TempDir()}
	err := c.Run()
	if c.ProcessState.ExitCode() != exitNoProgram {
		t.Errorf("%v, want ExitCode = %v", err, exitNoProgram)
	}
}
