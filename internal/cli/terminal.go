package cli

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"sync"
	"syscall"

	"golang.org/x/term"

	"github.com/llmsandbox/llmsandbox/backend"
	"github.com/llmsandbox/llmsandbox/internal/termsafe"
	"github.com/schollz/progressbar/v3"
)

func isTerminal(f *os.File) bool { return term.IsTerminal(int(f.Fd())) }

// programOutput is where a program's output goes: a pipe gets every byte, a
// terminal no control sequences unless raw. done flushes it.
func programOutput(f *os.File, raw bool, gone context.CancelCauseFunc) (w io.Writer, done func()) {
	if raw || !isTerminal(f) {
		return &outlet{f, gone}, func() {}
	}
	safe := &termsafe.Writer{W: &outlet{f, gone}}
	return safe, func() { _ = safe.Close() } // the terminal itself would have failed before
}

// An outlet writes to f, and calls gone when nothing reads there any more.
type outlet struct {
	f    *os.File
	gone context.CancelCauseFunc
}

func (o *outlet) Write(p []byte) (int, error) {
	n, err := o.f.Write(p)
	if readerGone(err) {
		o.gone(err)
	}
	return n, err
}

// outputEnded is the error that ended ctx, if an outlet ended it.
func outputEnded(ctx context.Context) error {
	if err := context.Cause(ctx); readerGone(err) {
		return err
	}
	return nil
}

// readerGone says that err is of writing to this command's own output, a pipe that nothing reads.
func readerGone(err error) bool {
	var write *fs.PathError
	return errors.As(err, &write) && errors.Is(write.Err, syscall.EPIPE) && (write.Path == os.Stdout.Name() || write.Path == os.Stderr.Name())
}

// progressShower shows long steps on stderr: a bar on a terminal, a line a step
// elsewhere. It is safe for concurrent use.
type progressShower struct {
	mu    sync.Mutex
	bar   *progressbar.ProgressBar
	stage string
}

func (p *progressShower) show(s backend.Progress) {
	p.mu.Lock()
	defer p.mu.Unlock()
	label := s.Stage
	if s.Message != "" {
		label += " " + s.Message
	}
	if !isTerminal(os.Stderr) {
		if label != p.stage {
			p.stage = label
			_, _ = io.WriteString(os.Stderr, "llmsandbox: "+termsafe.String(label)+"\n")
		}
		return
	}
	total := s.Total
	if total == 0 {
		total = -1
	}
	if label != p.stage || p.bar == nil {
		p.finish()
		p.stage = label
		p.bar = progressbar.NewOptions64(total, progressbar.OptionSetWriter(os.Stderr), progressbar.OptionSetDescription(termsafe.String(label)),
			progressbar.OptionShowBytes(true), progressbar.OptionClearOnFinish(), progressbar.OptionSetWidth(20))
	}
	if p.bar.GetMax64() != total && total > 0 {
		p.bar.ChangeMax64(total)
	}
	_ = p.bar.Set64(s.Current) // a bar that cannot be drawn is no reason to stop
}

func (p *progressShower) close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.finish()
}

func (p *progressShower) finish() {
	if p.bar != nil {
		_ = p.bar.Finish()
		p.bar = nil
	}
}
