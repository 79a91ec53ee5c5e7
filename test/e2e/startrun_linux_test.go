package e2e

import (
	"bufio"
	"io"
	"testing"

	"github.com/llmsandbox/llmsandbox"
)

// TestStartRunAhead: a run that is forked from a prepared interpreter is a Process as any other one.
func TestStartRunAhead(t *testing.T) {
	ctx := t.Context()
	sb, err := llmsandbox.Open(ctx, &llmsandbox.Options{BestEffort: true, Imports: []string{"decimal"}})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := sb.Close(); err != nil {
			t.Error(err)
		}
	}()
	const forked = "import sys, time\nprint('decimal' in sys.modules, flush=True)\n"
	for name, c := range map[string]struct {
		code string
		end  func(*llmsandbox.Process) error
		want llmsandbox.Result
	}{
		"by itself":   {forked + "sys.exit(3)", nil, llmsandbox.Result{Status: llmsandbox.StatusError, ExitCode: 3}},
		"interrupted": {"import sys, time\ntry:\n print('decimal' in sys.modules, flush=True)\n while True: time.sleep(0.1)\nexcept KeyboardInterrupt: sys.exit(4)", func(p *llmsandbox.Process) error { return p.Interrupt(ctx) }, llmsandbox.Result{Status: llmsandbox.StatusError, ExitCode: 4}},
		"killed":      {forked + "time.sleep(1000)", func(p *llmsandbox.Process) error { return p.Kill(ctx) }, llmsandbox.Result{Status: llmsandbox.StatusKilled, ExitCode: -1, Signal: "SIGKILL"}},
	} {
		t.Run(name, func(t *testing.T) {
			read, out := io.Pipe()
			defer read.Close()
			p, err := sb.StartRun(ctx, c.code, &llmsandbox.RunOptions{Stdout: out})
			if err != nil {
				t.Fatal(err)
			}
			output := bufio.NewReader(read)
			if line, err := output.ReadString('\n'); line != "True\n" {
				t.Errorf("it prints %q, %v; want that it has the module", line, err)
			}
			go io.Copy(io.Discard, output) // until read is closed
			if c.end != nil {
				if infos, err := sb.Processes(ctx); err != nil || len(infos) != 1 || infos[0].ID != p.ID() || infos[0].PID != p.PID() {
					t.Errorf("processes: %+v, %v; want that of id %d and pid %d", infos, err, p.ID(), p.PID())
				}
				if err := c.end(p); err != nil {
					t.Fatal(err)
				}
			}
			res, err := p.Wait(ctx)
			if err != nil || res.Status != c.want.Status || res.ExitCode != c.want.ExitCode || res.Signal != c.want.Signal {
				t.Errorf("%v: %s, %d, %s: %s; want %s, %d, %s", err, res.Status, res.ExitCode, res.Signal, res.Reason, c.want.Status, c.want.ExitCode, c.want.Signal)
			}
		})
	}
}
