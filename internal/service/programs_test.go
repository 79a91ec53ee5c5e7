package service

import (
	"context"
	"errors"
	"io"
	"runtime"
	"testing"

	"github.com/llmsandbox/llmsandbox"
	"github.com/llmsandbox/llmsandbox/backend/local"
)

// TestProgramWithoutEnd: a program that was started and of whose end nothing is known is lost, and stays so; and one that was never started is none.
func TestProgramWithoutEnd(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("the local backend needs Linux")
	}
	var by []string
	records := &memory{}
	s, err := New(&Config{
		Sandbox: llmsandbox.Options{BestEffort: true, Backend: local.New(&local.Options{StateDir: t.TempDir()})}, Warm: -1, Records: records,
		Ended: func(who string, res *llmsandbox.Result) { by = append(by, who+" "+string(res.Status)) },
	})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := s.Close(context.WithoutCancel(t.Context())); err != nil {
			t.Error(err)
		}
	}()
	sb, err := s.Create(t.Context(), "a", llmsandbox.Options{Language: "bash"})
	if err != nil {
		t.Fatal(err)
	}
	if err := records.PutRecord(t.Context(), "a", sb.ID(), programRecord(7), true, []byte(`{"by": "anna", "language": "bash"}`)); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		p, err := s.Program(t.Context(), "a", sb.ID(), 7)
		if err != nil {
			t.Fatal(err)
		}
		if res, err := p.Result(t.Context()); err != nil || res.Status != llmsandbox.StatusLost || res.SandboxID != sb.ID() || res.Language != "bash" || res.ExitCode != -1 {
			t.Errorf("%+v, %v, want a program that was lost", res, err)
		}
		if err := errors.Join(p.Kill(t.Context()), p.Signal(t.Context(), "INT")); err != nil {
			t.Error(err)
		}
		if err := p.Write(t.Context(), []byte("x"), true); !errors.Is(err, io.ErrClosedPipe) {
			t.Errorf("write: %v, want io.ErrClosedPipe", err)
		}
	}
	if len(by) != 1 || by[0] != "anna lost" {
		t.Errorf("ended: %q, want one that is lost", by)
	}
	if _, err := s.Program(t.Context(), "a", sb.ID(), 8); !errors.Is(err, llmsandbox.ErrNotFound) {
		t.Errorf("one that was not started: %v, want ErrNotFound", err)
	}
	if _, err := s.Program(t.Context(), "b", sb.ID(), 7); !errors.Is(err, llmsandbox.ErrNotFound) {
		t.Errorf("for another project: %v, want ErrNotFound", err)
	}
	if err := records.PutRecord(t.Context(), "a", sb.ID(), programRecord(9), false, []byte(`{}`)); err != nil {
		t.Fatal(err)
	}
	if p, err := s.Program(t.Context(), "a", sb.ID(), 9); err == nil {
		t.Errorf("%+v of a record that makes no sense, want an error", p)
	}
	if err := s.Remove(t.Context(), "a", sb.ID()); err != nil {
		t.Error(err)
	}
}
