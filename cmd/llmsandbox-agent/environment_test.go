//go:build linux

package main

import (
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
)

// TestConnectTellsItsEnvironment: first what it was given, then the stream as ever.
func TestConnectTellsItsEnvironment(t *testing.T) {
	program, dir := agentImage(t)
	l, err := net.Listen("unix", filepath.Join(dir, "s"))
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	go func() {
		conn, err := l.Accept()
		if err != nil {
			return // the test is over
		}
		io.Copy(conn, conn)
		conn.Close()
	}()
	cmd := exec.Command(program, "connect", "--environment", l.Addr().String())
	cmd.Dir = dir
	cmd.Env = []string{envAgent + "=1", "LLMSANDBOX_TOKEN=secret", "A=1", "EMPTY=", "LINES=a\nb=c", "PWD=" + dir}
	cmd.Stdin = strings.NewReader("the stream\x00\x00")
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	want := []string{runtime.GOARCH, dir, "A=1", "EMPTY=", "LINES=a\nb=c", "PWD=" + dir, "", "the stream", "", ""}
	if got := strings.Split(string(out), "\x00"); !slices.Equal(got, want) {
		t.Errorf("said %q, want %q", got, want)
	}
}

// TestConnectToNobodySaysNothing on stdout, where an environment would be taken for one.
func TestConnectToNobodySaysNothing(t *testing.T) {
	program, dir := agentImage(t)
	cmd := exec.Command(program, "connect", "--environment", filepath.Join(dir, "s"))
	cmd.Env = append(os.Environ(), envAgent+"=1")
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err == nil || len(out) > 0 || !strings.Contains(stderr.String(), "connect to the agent at "+dir) {
		t.Errorf("%v, stdout %q, stderr %q, want an error, no out, stderr containing %q", err, out, stderr.String(), "connect to the agent at "+dir)
	}
}
