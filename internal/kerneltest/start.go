//go:build unix

package kerneltest

import (
	"bufio"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/llmsandbox/llmsandbox/internal/language"
)

// Start starts the driver of lang and waits until it is ready.
func Start(t testing.TB, lang *language.Language, env ...string) *Kernel {
	t.Helper()
	return StartWith(t, lang, nil, env...)
}

// StartWith is Start with library directories.
func StartWith(t testing.TB, lang *language.Language, libraries []string, env ...string) *Kernel {
	t.Helper()
	base := t.TempDir()
	k := &Kernel{t: t, def: lang.Kernel, exited: make(chan struct{}), Dir: filepath.Join(base, "kernel"), Workdir: filepath.Join(base, "work")}
	tmp := filepath.Join(base, "tmp")
	for _, dir := range []string{k.Workdir, tmp} {
		if err := os.Mkdir(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	plan, err := lang.Kernel.Plan(language.KernelSource{ID: "k1", Dir: k.Dir, Workdir: k.Workdir, TempDir: tmp, Libraries: libraries, Program: program})
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range plan.Files {
		if err := os.MkdirAll(filepath.Dir(f.Path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(f.Path, f.Data, os.FileMode(f.Mode)); err != nil {
			t.Fatal(err)
		}
	}
	if len(plan.Steps) != 1 {
		t.Fatalf("%d steps: a driver is one process, want 1", len(plan.Steps))
	}
	step := plan.Steps[0]
	ctx, cancel := context.WithTimeout(context.Background(), 3*patience)
	k.cmd = exec.CommandContext(ctx, step.Argv[0], step.Argv[1:]...)
	// The locale is a sandbox's: this process may have none.
	k.cmd.Dir, k.cmd.Env = k.Workdir, append(append(append(os.Environ(), "TMPDIR="+tmp, "LC_ALL=C.UTF-8"), step.Env...), env...)
	k.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	k.cmd.Cancel = func() error { return syscall.Kill(-k.cmd.Process.Pid, syscall.SIGKILL) }
	requests, to := pipe(t)
	from, replies := pipe(t)
	k.to, k.from = to, bufio.NewReaderSize(from, 1<<16)
	k.cmd.ExtraFiles = []*os.File{requests, replies}
	var ends []*os.File
	for i, w := range []*os.File{nil, nil} {
		r, child := pipe(t)
		k.out[i], w = newStream(r), child
		ends = append(ends, w)
	}
	k.cmd.Stdout, k.cmd.Stderr = ends[0], ends[1]
	if err := k.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	for _, f := range append(ends, requests, replies) {
		f.Close()
	}
	go func() { k.cmd.Wait(); close(k.exited) }()
	t.Cleanup(func() {
		k.to.Close() // the end of requests ends a driver
		select {
		case <-k.exited:
		case <-time.After(patience):
			t.Errorf("the driver still runs %v after the end of its requests, want it ended", patience)
		}
		syscall.Kill(-k.cmd.Process.Pid, syscall.SIGKILL)
		cancel()
		from.Close()
		for _, s := range k.out {
			s.r.Close()
			<-s.done
		}
		<-k.exited
	})
	ready := k.next()
	if ready.Event != "ready" || ready.Language != lang.Name || ready.Version == "" {
		t.Fatalf("the driver begins with %+v, want Event = \"ready\", Language = %v, Version not empty", ready, lang.Name)
	}
	k.Version = ready.Version
	return k
}

func pipe(t testing.TB) (r, w *os.File) {
	t.Helper()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	return r, w
}
