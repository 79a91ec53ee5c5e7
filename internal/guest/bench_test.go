//go:build linux

package guest_test

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/llmsandbox/llmsandbox/internal/agentproto"
)

// BenchmarkBareTrue is what BenchmarkTrue is measured against.
func BenchmarkBareTrue(b *testing.B) {
	for b.Loop() {
		if err := exec.Command("/bin/true").Run(); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkTrue(b *testing.B) {
	for _, m := range modes() {
		b.Run(m.name, func(b *testing.B) {
			a := startAgent(b, m)
			for b.Loop() {
				p, err := a.client.Start(b.Context(), agentproto.StartRequest{Argv: []string{"/bin/true"}})
				if err != nil {
					b.Fatal(err)
				}
				if exit, err := p.Wait(b.Context()); err != nil || !exit.Known || exit.Code != 0 {
					b.Fatalf("exit = %v, err = %v, want no error, Known true, Code = 0", exit, err)
				}
			}
			b.ReportMetric(float64(memory(b, a.cmd.Process.Pid, "VmRSS:")), "agent-KiB")
		})
	}
}

// BenchmarkStart is the time from the agent's exec to its first answer.
func BenchmarkStart(b *testing.B) {
	for b.Loop() {
		a := startAgent(b, mode{name: "same-user"})
		b.ReportMetric(float64(memory(b, a.cmd.Process.Pid, "VmRSS:")), "agent-KiB")
		a.client.Close()
		a.cmd.Process.Kill()
	}
}

func BenchmarkOutput(b *testing.B) {
	a := startAgent(b, mode{name: "same-user"})
	b.SetBytes(100 << 20)
	for b.Loop() {
		p, err := a.client.Start(b.Context(), sh("head -c 104857600 /dev/zero"))
		if err != nil {
			b.Fatal(err)
		}
		if n, err := io.Copy(io.Discard, p.Stdout()); err != nil || n != 100<<20 {
			b.Fatalf("n = %v, err = %v, want no error, n = 100 MiB", n, err)
		}
		if _, err := p.Wait(b.Context()); err != nil {
			b.Fatal(err)
		}
	}
}

// memory returns a line of a process's status, in KiB.
func memory(t testing.TB, pid int, name string) int {
	t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(text), name)
	var kib int
	fmt.Sscan(rest, &kib)
	return kib
}

// TestMemory holds the agent to its budget, after it has worked.
func TestMemory(t *testing.T) {
	a := startAgent(t, mode{name: "same-user"})
	for range 20 {
		a.run(sh("echo x"))
	}
	if kib := memory(t, a.cmd.Process.Pid, "VmRSS:"); kib > 10<<10 {
		t.Errorf("the agent holds %d KiB; the budget is 10 MiB, want at most 10 KiB", kib)
	}
}
