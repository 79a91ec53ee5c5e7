//go:build linux

package main

import (
	"archive/tar"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// envAgent makes the test's own program an agent.
const envAgent = "LLMSANDBOX_TEST_IS_AGENT"

func TestMain(m *testing.M) {
	if os.Getenv(envAgent) != "" {
		main()
		return
	}
	os.Exit(m.Run())
}

// An agentImage is a directory as the agent's image has it, and an empty one to install into.
func agentImage(t *testing.T) (program, dir string) {
	t.Helper()
	image := t.TempDir()
	program, dir = filepath.Join(image, "agent"), t.TempDir()
	t.Cleanup(func() {
		// Else only root could remove the directory.
		if err := os.Chmod(filepath.Join(dir, closedDir), 0o700); err != nil && !errors.Is(err, os.ErrNotExist) {
			t.Error(err)
		}
	})
	own, err := os.ReadFile(self)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(program, own, 0o555); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(image, filterFile), []byte("a filter"), 0o400); err != nil {
		t.Fatal(err)
	}
	return program, dir
}

// agent runs a program as an agent and returns what it said on stderr.
func agent(stdin io.Reader, program string, args ...string) (string, error) {
	var stderr strings.Builder
	cmd := exec.Command(program, args...)
	cmd.Env = append(os.Environ(), envAgent+"=1")
	cmd.Stdin, cmd.Stderr = stdin, &stderr
	err := cmd.Run()
	return stderr.String(), err
}

func oneFile(t *testing.T) *bytes.Buffer {
	t.Helper()
	var buf bytes.Buffer
	w := tar.NewWriter(&buf)
	if err := w.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: "0/f", Mode: 0o644, Size: 4}); err != nil {
		t.Fatal(err)
	}
	fmt.Fprint(w, "data")
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return &buf
}

func TestInstall(t *testing.T) {
	program, dir := agentImage(t)
	old := syscall.Umask(0o077) // the modes hold whatever it is
	t.Cleanup(func() { syscall.Umask(old) })
	for range 2 { // again over what is there: a container may be started twice
		if said, err := agent(nil, program, "install", dir); err != nil {
			t.Fatal(said, err)
		}
	}
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) != 3 {
		t.Errorf("installed %v, %v, want no error, len(entries) = 3", entries, err)
	}
	for name, mode := range map[string]os.FileMode{"agent": 0o111, "seccomp": 0o444, "closed": os.ModeDir} {
		if info, err := os.Stat(filepath.Join(dir, name)); err != nil || info.Mode() != mode {
			t.Errorf("%s: %v, %v, want mode %v", name, info, err, mode)
		}
	}
	closed := filepath.Join(dir, closedDir)
	if err := os.Chmod(closed, 0o700); err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(filepath.Join(closed, closedFile)); err != nil || info.Size() != 0 {
		t.Errorf("in the closed directory: %v, %v, want no error, Size = 0", info, err)
	}
	// What is installed runs, and brings its layers.
	if said, err := agent(oneFile(t), filepath.Join(dir, "agent"), "unpack", filepath.Join(dir, "layers")); err != nil {
		t.Error(said, err)
	}
	if data, err := os.ReadFile(filepath.Join(dir, "layers/0/f")); err != nil || string(data) != "data" {
		t.Errorf("%q, %v, want no error, data = \"data\"", data, err)
	}
}

func TestInstallWithLayers(t *testing.T) {
	for _, c := range []struct {
		args string
		mode os.FileMode
	}{
		{"--layers --max-files 1 --max-bytes 4", 0o111},
		{"--readable --layers", 0o555},
	} {
		program, dir := agentImage(t)
		if said, err := agent(oneFile(t), program, append([]string{"install", dir}, strings.Fields(c.args)...)...); err != nil {
			t.Fatal(said, err)
		}
		if data, err := os.ReadFile(filepath.Join(dir, "layers/0/f")); err != nil || string(data) != "data" {
			t.Errorf("%s: %q, %v, want no error, data = \"data\"", c.args, data, err)
		}
		if info, err := os.Stat(filepath.Join(dir, "agent")); err != nil || info.Mode() != c.mode {
			t.Errorf("%s: %v, %v, want mode %v", c.args, info, err, c.mode)
		}
	}
}

func TestInstallAndUnpackRefuse(t *testing.T) {
	program, dir := agentImage(t)
	alone := filepath.Join(t.TempDir(), "agent")
	if err := os.Link(program, alone); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		program, args string
		says          string
	}{
		{program, "install", "usage"},
		{program, "install DIR --nonsense", "usage"},
		{program, "install DIR --readable --nonsense", "usage"},
		{program, "install DIR/missing", "no such file"},
		{program, "install DIR/x --layers --max-files", "no such file"},
		{program, "unpack", "usage"},
		{program, "unpack DIR/l --max-files", "usage"},
		{program, "unpack DIR/l --nonsense 1", "usage"},
		{program, "unpack DIR/l --max-files 0", "number from 1 on"},
		{program, "unpack DIR/l --max-bytes 3", "too large: more than 3 bytes"},
		{alone, "install DIR", "install the seccomp filter: open " + filepath.Dir(alone) + "/seccomp: no such file"},
	} {
		said, err := agent(oneFile(t), c.program, strings.Fields(strings.ReplaceAll(c.args, "DIR", dir))...)
		if err == nil || !strings.Contains(said, c.says) {
			t.Errorf("%s: %v, said %q, want %q", c.args, err, said, c.says)
		}
	}
	if _, err := os.Stat(filepath.Join(dir, "agent")); err == nil {
		t.Error("an agent was installed without its filter: got no error, want an error")
	}
}
