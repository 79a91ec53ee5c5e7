package cgroup

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"
	"golang.org/x/sys/unix"
)

// The test binary is also the program that runs inside a group.
func TestMain(m *testing.M) {
	child := os.Getenv("CGROUP_TEST_CHILD")
	if child != "" && child != "sleep" {
		os.Stdin.Read(make([]byte, 1)) // until Start has returned
	}
	if inner, ok := strings.CutPrefix(child, "parent of "); ok {
		cmd := exec.Command("/proc/self/exe")
		cmd.Env = []string{"CGROUP_TEST_CHILD=" + inner}
		cmd.Run()
		fmt.Println(cmd.ProcessState, cmd.ProcessState.UserTime()+cmd.ProcessState.SystemTime())
		io.Copy(io.Discard, os.Stdin) // the group must not be empty yet
		os.Exit(0)
	}
	switch child {
	case "groups":
		data, _ := os.ReadFile("/proc/self/cgroup")
		os.Stdout.Write(data)
		os.Exit(0)
	case "memory":
		b, err := unix.Mmap(-1, 0, 256<<20, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_ANON|unix.MAP_PRIVATE)
		if err != nil {
			os.Exit(3)
		}
		for i := 0; i < len(b); i += 4096 {
			b[i] = 1
		}
		os.Exit(0)
	case "forks":
		n := 0
		for ; n < 200; n++ {
			cmd := exec.Command("/proc/self/exe")
			cmd.Env = []string{"CGROUP_TEST_CHILD=sleep", "GOMAXPROCS=1"}
			if err := cmd.Start(); err != nil {
				break
			}
		}
		fmt.Println(n)
		os.Exit(0)
	case "spin":
		for end := time.Now().Add(time.Second); time.Now().Before(end); {
		}
		os.Exit(0)
	case "spin on":
		for n := 0; ; n++ {
		}
	case "container":
		if err := inContainer(); err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
		os.Exit(0)
	case "sleep":
		time.Sleep(time.Minute)
		os.Exit(0)
	}
	goleak.VerifyTestMain(m)
}

// support that can hold all limits, or the test does not run.
func support(t testing.TB) *Support {
	t.Helper()
	s := Detect()
	for _, c := range s.Controls() {
		if c.Enforced {
			continue
		}
		reason := fmt.Sprintf("no control groups of our own to make: %+v", c)
		if os.Getenv("LLMSANDBOX_REQUIRE") == "1" {
			t.Fatal(reason)
		}
		t.Skip(reason)
	}
	return s
}

func newGroup(t testing.TB, l Limits) *Group {
	t.Helper()
	name := fmt.Sprintf("cgtest-%d-%d", os.Getpid(), time.Now().UnixNano())
	g, err := support(t).Create(t.Context(), name, l)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := g.Destroy(context.Background()); err != nil {
			t.Error(err)
		}
		if err := g.s.Remove(context.Background(), name); err != nil {
			t.Error(err)
		}
	})
	return g
}

// A child is this binary, running as the program of that name in a group.
type child struct {
	*exec.Cmd
	in  io.WriteCloser
	out *bufio.Reader
}

func start(t testing.TB, g *Group, name string) *child {
	t.Helper()
	c := &child{Cmd: exec.Command("/proc/self/exe")}
	c.Env = []string{"CGROUP_TEST_CHILD=" + name}
	in, err := c.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := c.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	c.in, c.out = in, bufio.NewReader(out)
	err = g.Start(t.Context(), func(fd int) (int, error) {
		c.SysProcAttr = &syscall.SysProcAttr{UseCgroupFD: fd >= 0, CgroupFD: max(fd, 0)}
		if err := c.Cmd.Start(); err != nil {
			return 0, err
		}
		return c.Process.Pid, nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.in.Write([]byte("\n")); err != nil {
		t.Fatal(err)
	}
	return c
}

// end lets the child end and returns all it still had to say.
func (c *child) end() (string, error) {
	c.in.Close()
	out, err := io.ReadAll(c.out)
	return string(out), errors.Join(err, c.Wait())
}
