package signame

import (
	"syscall"
	"testing"
)

func TestNames(t *testing.T) {
	for sig, want := range map[syscall.Signal]string{
		syscall.SIGHUP: "SIGHUP", syscall.SIGKILL: "SIGKILL", syscall.SIGSEGV: "SIGSEGV", syscall.SIGTERM: "SIGTERM",
	} {
		if got := Name(uint32(sig)); got != want {
			t.Errorf("Name(%d) = %q, want %q", sig, got, want)
		}
		for _, name := range []string{want, want[3:]} {
			if n, ok := Number(name); !ok || n != uint32(sig) {
				t.Errorf("Number(%q) = %d, %v, want %d", name, n, ok, sig)
			}
		}
	}
	if got := Name(31); got != "SIGSYS" {
		t.Errorf("Name(31) = %q, want SIGSYS", got)
	}
	if got := Name(40); got != "signal 40" {
		t.Errorf("Name(40) = %q, want \"signal 40\"", got)
	}
}

func TestNumberRefuses(t *testing.T) {
	for _, name := range []string{"", "0", "65", "SIG", "SIGFOO", "-1", "KILL "} {
		if n, ok := Number(name); ok {
			t.Errorf("Number(%q) = %d, want none", name, n)
		}
	}
}
