//go:build unix

package kerneltest

import (
	"strings"
	"syscall"
	"testing"
	"time"
)

func ends(t *testing.T, start func(*testing.T) *Kernel, c Cells) {
	k := start(t)
	if c.ExitOnly {
		if !k.Gone(c.Exit) {
			t.Error("the driver tells of its end: k.Gone(c.Exit) = false, want true")
		}
	} else if e := k.Run(c.Exit); e.Status != "exit" || e.ExitCode == nil || *e.ExitCode != 3 || strings.TrimSpace(e.Stdout) != "bye" {
		t.Errorf("got %+v, want Status = \"exit\", ExitCode = 3, strings.TrimSpace(e.Stdout) = \"bye\"", e)
	}
	if !c.Stays {
		if s := k.Exit(); s.ExitCode() != 3 {
			t.Errorf("the driver: %v, want ExitCode = 3", s)
		}
	}
	k = start(t)
	if !k.Gone(c.Crash) {
		t.Error("an event came from a driver that crashed: k.Gone(c.Crash) = false, want true")
	}
	if s := k.Exit().Sys().(syscall.WaitStatus); !s.Signaled() && s.ExitStatus() == 0 {
		t.Errorf("the driver: %v, want s.Signaled() = true or ExitStatus != 0", s)
	}
}

func interrupts(t *testing.T, k *Kernel, c Cells) {
	k.prime(c)
	for _, code := range []string{c.Sleep, c.Loop} {
		began := time.Now()
		e := k.RunWhile(code, k.Interrupt)
		if e.Status != "interrupted" || e.Lost {
			t.Errorf("%q: %+v %v, want Status = \"interrupted\", Lost false", code, e, e.Failure)
		}
		t.Logf("interrupted after %v", time.Since(began).Round(time.Millisecond))
		k.kept(c)
	}
}
