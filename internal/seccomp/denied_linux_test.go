package seccomp

import (
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/llmsandbox/llmsandbox/test/abuse"
)

// The kernel interface's attacks, under the filter alone. It shows most as root,
// where nothing else stands in their way; there they run in namespaces of their
// own, should one get through.
func TestAttacksAreDenied(t *testing.T) {
	for _, c := range abuse.Cases() {
		// Changing interfaces is left to capabilities, which root here has.
		if c.Number < 42 || c.Number > 53 || c.Name == "netlink_route" {
			continue
		}
		t.Run(c.Name, func(t *testing.T) {
			program := compile(t, c.Source)
			self, err := os.Executable()
			if err != nil {
				t.Fatal(err)
			}
			cmd := exec.Command(self, program)
			cmd.Dir = filepath.Dir(program)
			cmd.Env = append(os.Environ(), underFilter+"=1")
			if os.Getuid() == 0 {
				cmd.SysProcAttr = &syscall.SysProcAttr{Unshareflags: syscall.CLONE_NEWNS | syscall.CLONE_NEWUTS | syscall.CLONE_NEWIPC | syscall.CLONE_NEWNET}
			}
			out, err := cmd.CombinedOutput()
			if err != nil {
				t.Fatalf("%v\n%s", err, out)
			}
			if err := c.Check(abuse.Outcome{Status: "ok", Stdout: string(out)}); err != nil {
				t.Errorf("%v\n%s", err, out)
			}
		})
	}
}

// TestEntering: setns is the only call that the filter of a process which enters sandboxes has more.
func TestEntering(t *testing.T) {
	program := compile(t, `
#define _GNU_SOURCE
#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <sys/mount.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <unistd.h>
int main() {
	setns(-1, 0); printf("%d", errno);
	unshare(CLONE_NEWUTS); printf(" %d", errno);
	ptrace(PTRACE_TRACEME, 0, 0, 0); printf(" %d", errno);
	mount("x", "/", "x", 0, 0); printf(" %d", errno);
	errno = 0; syscall(0x40000000 | SYS_setns, -1, 0); printf(" %d\n", errno != EBADF && errno != 0);
}`)
	for value, want := range map[string]string{"1": "1 1 1 1 1\n", "entering": "9 1 1 1 1\n"} {
		self, err := os.Executable()
		if err != nil {
			t.Fatal(err)
		}
		cmd := exec.Command(self, program)
		cmd.Env = append(os.Environ(), underFilter+"="+value)
		if out, err := cmd.CombinedOutput(); err != nil || string(out) != want {
			t.Errorf("%s: %q, %v, want %q", value, out, err, want)
		}
	}
}

func compile(t *testing.T, source string) string {
	t.Helper()
	if _, err := exec.LookPath("gcc"); err != nil {
		missing(t, err.Error())
	}
	dir := t.TempDir()
	file, program := filepath.Join(dir, "p.c"), filepath.Join(dir, "p")
	if err := os.WriteFile(file, []byte(source), 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command("gcc", "-static", "-o", program, file).CombinedOutput(); err != nil {
		t.Fatalf("gcc: %v\n%s", err, out)
	}
	return program
}
