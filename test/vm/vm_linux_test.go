// Package vm runs tests in emulated machines that have cgroup v2 only: run.sh says
// which. docs/cgroups.md tells what they prove.
package vm

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"
)

const (
	groupTests   = "github.com/llmsandbox/llmsandbox/internal/cgroup"
	sandboxTests = "github.com/llmsandbox/llmsandbox/test/vm/limits"
	unitTests    = "github.com/llmsandbox/llmsandbox/test/vm/unit"
)

func TestMachines(t *testing.T) {
	wanted(t)
	groups, limits := build(t, groupTests), build(t, sandboxTests)
	for _, c := range []struct {
		mode, enforcedBy string
		programs         []string
	}{
		{"root", "cgroup v2", []string{groups, limits}},
		{"system", "cgroup v2", []string{limits}},
		{"session", "cgroup v2 (systemd user scope)", []string{groups, limits}},
		{"service", "cgroup v2 (systemd user scope)", []string{groups}},
		{"delegated", "cgroup v2 (delegated)", []string{groups, limits}},
	} {
		t.Run(c.mode, func(t *testing.T) {
			inMachine(t, c.mode, c.programs, "VM_ENV=LIMITS_ENFORCED_BY='"+c.enforcedBy+"'")
		})
	}
}

// TestUnit: the unit of systemd that the server comes with.
func TestUnit(t *testing.T) {
	wanted(t)
	unit, err := filepath.Abs("../../deploy/systemd/llmsandbox.service")
	if err != nil {
		t.Fatal(err)
	}
	command := filepath.Join(os.Getenv("LLMSANDBOX_TEST_COMMANDS"), "llmsandbox")
	inMachine(t, "system", []string{build(t, unitTests)}, "VM_FILES="+command+","+unit, "VM_ENV=UNIT_PAYLOAD=/payload")
}

func required() bool { return os.Getenv("LLMSANDBOX_REQUIRE") == "1" }

// wanted skips a test where nobody asked for machines.
func wanted(t *testing.T) {
	t.Helper()
	if !required() && os.Getenv("LLMSANDBOX_VM") != "1" {
		t.Skip("boots virtual machines for minutes: set LLMSANDBOX_VM=1, or run make vm")
	}
	if runtime.GOARCH != "amd64" {
		t.Skip("the machines are amd64")
	}
}

// inMachine runs programs in a machine, with these variables for run.sh.
func inMachine(t *testing.T, mode string, programs []string, env ...string) {
	t.Helper()
	code, out, err := boot(t, mode, programs, env)
	if code == stoodStill {
		t.Logf("the machine stood still, and is tried once more:\n%s", out)
		code, out, err = boot(t, mode, programs, env)
	}
	switch {
	case code == notHere && !required():
		t.Skipf("no virtual machine here: %s", out)
	case err != nil:
		t.Fatalf("%v\n%s", err, out)
	}
	t.Logf("%s", out)
}

// Exit codes of run.sh that are not a program's.
const (
	notHere = 77
	// stoodStill: no code came out, not even that of a program whose own time was over. Once
	// in many boots an emulator loses the interrupts that a machine's clock lives by.
	stoodStill = 125
)

// boot runs programs in a machine.
func boot(t *testing.T, mode string, programs, env []string) (code int, out []byte, err error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 6*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, "./run.sh", mode, strings.Join(programs, ","), "-test.v", "-test.timeout=270s")
	cmd.Env = append(append(os.Environ(), "VM_TIMEOUT=330"), env...)
	out, err = cmd.CombinedOutput()
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		code = exit.ExitCode()
	}
	return code, out, err
}

// build makes a test binary that needs no library of the machine it runs in.
func build(t *testing.T, pkg string) string {
	t.Helper()
	bin := filepath.Join(t.TempDir(), filepath.Base(pkg)+".test")
	cmd := exec.Command("go", "test", "-c", "-o", bin, pkg)
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("build %s: %v\n%s", pkg, err, out)
	}
	return bin
}
