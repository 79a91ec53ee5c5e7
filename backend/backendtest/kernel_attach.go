package backendtest

import (
	"context"
	"errors"
	"io/fs"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/llmsandbox/llmsandbox"
)

// attachKernel takes a kernel over with another handle; it is closed with the test.
func attachKernel(t *testing.T, sb *llmsandbox.Sandbox, id string, running *llmsandbox.CellOptions) *llmsandbox.Kernel {
	t.Helper()
	k, err := sb.AttachKernel(testContext(t), id, plainPython, running)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := k.Close(); err != nil {
			t.Errorf("close the kernel: %v", err)
		}
	})
	return k
}

// beginCell runs a cell that prints "begun" first, and returns once it has.
func beginCell(t *testing.T, k *llmsandbox.Kernel, code string, stdin func(context.Context, string, bool) (string, error)) (ended <-chan error) {
	t.Helper()
	out, done := newReply(), make(chan error, 1)
	t.Cleanup(out.close)
	go func() {
		_, err := k.Run(testContext(t), "print('begun', flush=True)\n"+code, &llmsandbox.CellOptions{Stdout: out, Stdin: stdin})
		done <- err
	}()
	out.want(t, "begun")
	return done
}

// kernelsAttached are taken over from one handle by another, with their state and the cell
// that runs.
func (s *suite) kernelsAttached(t *testing.T) {
	ctx := testContext(t)
	sb := s.open(t, llmsandbox.Options{})
	other := s.attach(t, sb)
	gone := func(t *testing.T, k *llmsandbox.Kernel) {
		t.Helper()
		if _, err := k.Run(ctx, "1", nil); !errors.Is(err, llmsandbox.ErrDetached) {
			t.Errorf("a cell of a handle whose kernel is another's: %v, want ErrDetached", err)
		}
		if err := k.Close(); err != nil {
			t.Error(err)
		}
	}
	noCell := func(t *testing.T, k *llmsandbox.Kernel) {
		t.Helper()
		if c, err := k.Wait(ctx); c != nil || err != nil {
			t.Errorf("the cell that ran: %+v, %v; want none", c, err)
		}
	}
	t.Run("detached", func(t *testing.T) {
		k := openKernel(t, sb, "", plainPython)
		wantValue(t, k, "x = 5; 1", "1")
		infos, err := other.Kernels(ctx)
		if want := (llmsandbox.KernelInfo{ID: k.Info().ID, Language: "python"}); err != nil || !slices.Equal(infos, []llmsandbox.KernelInfo{want}) {
			t.Errorf("kernels: %+v, %v; want %+v", infos, err, want)
		}
		if err := k.Detach(ctx); err != nil {
			t.Fatal(err)
		}
		gone(t, k)
		again := attachKernel(t, other, k.Info().ID, nil)
		noCell(t, again)
		if again.Info() != k.Info() {
			t.Errorf("info %+v, want %+v", again.Info(), k.Info())
		}
		if c := wantValue(t, again, "x", "5"); c.Count != 2 || c.Restarted {
			t.Errorf("the first cell of the next handle: %+v; want number 2 and no restart", c)
		}
		if err := again.Restart(ctx); err != nil {
			t.Fatal(err)
		}
		wantValue(t, again, "'x' in globals()", "False")
		if infos, err := sb.Kernels(ctx); err != nil || len(infos) != 1 || infos[0].ID != k.Info().ID {
			t.Errorf("kernels after a restart: %+v, %v; want one of id %s", infos, err, k.Info().ID)
		}
	})
	t.Run("taken while it is idle", func(t *testing.T) {
		k := openKernel(t, sb, "", plainPython)
		wantValue(t, k, "x = 6; open('artifacts/early.txt', 'w').write('e')", "1")
		again := attachKernel(t, other, k.Info().ID, nil)
		gone(t, k)
		if c, err := again.Wait(ctx); err != nil || c != nil && (!c.OK() || c.Value["text/plain"] != "1" || c.Stdout != "") {
			t.Errorf("the cell that ran: %+v, %v; want none, or the one that has just ended", c, err)
		}
		c := wantValue(t, again, "open('artifacts/late.txt', 'w').write('l'); x", "6")
		if len(c.Artifacts) != 1 || c.Artifacts[0].Name != "late.txt" {
			t.Errorf("artifacts %+v, want late.txt alone", c.Artifacts)
		}
	})
	t.Run("taken in a cell", func(t *testing.T) {
		k := openKernel(t, sb, "", plainPython)
		ended := beginCell(t, k, "import os, time\nwhile not os.path.exists('go'): time.sleep(0.01)\nprint(input('more? '))\n7", func(ctx context.Context, _ string, _ bool) (string, error) {
			<-ctx.Done()
			return "", ctx.Err()
		})
		var out strings.Builder
		again := attachKernel(t, other, k.Info().ID, &llmsandbox.CellOptions{
			Stdout: &out, Stdin: func(context.Context, string, bool) (string, error) { return "answer", nil },
		})
		if err := <-ended; !errors.Is(err, llmsandbox.ErrDetached) {
			t.Errorf("the cell of the handle before: %v, want ErrDetached", err)
		}
		short, cancel := context.WithTimeout(ctx, 50*time.Millisecond)
		defer cancel()
		if c, err := again.Wait(short); c != nil || !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("wait for a cell that runs: %+v, %v; want the context's end", c, err)
		}
		next := make(chan *llmsandbox.Cell, 1)
		go func() {
			c, err := again.Run(ctx, "8", nil)
			if err != nil {
				t.Errorf("the next cell: %v", err)
			}
			next <- c
		}()
		if err := sb.WriteFile(ctx, "go", nil); err != nil {
			t.Fatal(err)
		}
		c, err := again.Wait(ctx)
		if err != nil || !c.OK() || c.Value["text/plain"] != "7" || c.Count != 1 {
			t.Errorf("the cell that ran: %+v, %v; want the value 7 of cell 1", c, err)
		}
		// What was read before may be kept still.
		if want := "begun\nanswer\n"; c.Stdout == "" || !strings.HasSuffix(want, c.Stdout) || out.String() != c.Stdout {
			t.Errorf("its output %q, written %q; want an end of %q", c.Stdout, out.String(), want)
		}
		if c := <-next; c.Value["text/plain"] != "8" || c.Count != 2 || c.Stdout != "" {
			t.Errorf("the cell after it: %+v; want the value 8 of cell 2, and no output", c)
		}
	})
	t.Run("interrupted", func(t *testing.T) {
		k := openKernel(t, sb, "", plainPython)
		wantValue(t, k, "x = 9", "")
		ended := beginCell(t, k, "import time\ntime.sleep(600)", nil)
		again := attachKernel(t, other, k.Info().ID, nil)
		<-ended
		if err := again.Interrupt(ctx); err != nil {
			t.Fatal(err)
		}
		c, err := again.Wait(ctx)
		if err != nil || c.Status != llmsandbox.StatusKilled || !c.Interrupted {
			t.Errorf("the cell that ran: %+v, %v; want interrupted", c, err)
		}
		wantValue(t, again, "x", "9")
	})
	t.Run("timeout", func(t *testing.T) {
		k := openKernel(t, sb, "", plainPython)
		wantValue(t, k, "x = 10", "")
		ended := beginCell(t, k, "import time\ntime.sleep(600)", nil)
		again := attachKernel(t, other, k.Info().ID, &llmsandbox.CellOptions{Timeout: 50 * time.Millisecond})
		<-ended
		if c, err := again.Wait(ctx); err != nil || c.Status != llmsandbox.StatusTimeout {
			t.Errorf("the cell that ran: %+v, %v; want a timeout", c, err)
		}
		wantValue(t, again, "x", "10")
	})
	t.Run("it waits for input already", func(t *testing.T) {
		k := openKernel(t, sb, "", plainPython)
		asked := make(chan struct{})
		ended := beginCell(t, k, "x = 11\ninput()", func(ctx context.Context, _ string, _ bool) (string, error) {
			close(asked)
			<-ctx.Done()
			return "", ctx.Err()
		})
		<-asked
		again := attachKernel(t, other, k.Info().ID, &llmsandbox.CellOptions{
			Stdin: func(context.Context, string, bool) (string, error) { return "asked again", nil },
		})
		<-ended
		if c, err := again.Wait(ctx); err != nil || c.Value["text/plain"] != "'asked again'" {
			t.Errorf("the cell that ran: %+v, %v; want the value 'asked again'", c, err)
		}
		wantValue(t, again, "x", "11")
	})
	t.Run("closed in a cell", func(t *testing.T) {
		k := openKernel(t, sb, "", plainPython)
		ended := beginCell(t, k, "import time\ntime.sleep(600)", nil)
		again := attachKernel(t, other, k.Info().ID, nil)
		<-ended
		if err := again.Close(); err != nil {
			t.Fatal(err)
		}
		if c, err := again.Wait(ctx); !errors.Is(err, llmsandbox.ErrKernelClosed) || !c.StateLost {
			t.Errorf("the cell that ran: %+v, %v; want ErrKernelClosed", c, err)
		}
	})
	t.Run("none", func(t *testing.T) {
		if infos, err := sb.Kernels(ctx); err != nil || len(infos) != 0 {
			t.Errorf("kernels: %+v, %v; want none", infos, err)
		}
		if _, err := other.AttachKernel(ctx, "1", nil, nil); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("attach to none: %v, want fs.ErrNotExist", err)
		}
		if _, err := other.AttachKernel(ctx, "1", &llmsandbox.KernelOptions{Libraries: []string{"x"}}, nil); !errors.Is(err, llmsandbox.ErrInvalid) {
			t.Errorf("attach with libraries: %v, want ErrInvalid", err)
		}
	})
}
