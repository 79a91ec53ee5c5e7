package image

import (
	"context"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strconv"
	"strings"
	"sync"

	"github.com/moby/moby/client"

	"github.com/llmsandbox/llmsandbox/backend"
)

const (
	lastLines   = 20   // of a build's output, in its error
	maxLastLine = 300  // bytes of one of them
	maxPartial  = 4096 // bytes of a line that has not ended
)

// stepLine is how Docker ("Step 2/5 : RUN x") and Podman ("STEP 2/5: RUN x") begin a step.
var stepLine = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^(?i:step) (\d{1,4})/(\d{1,4}) ?: (.*)$`)
})

// A buildLog reads what a build prints. What programs in it print can look like anything
// the builder says: it is only shown, never acted on.
type buildLog struct {
	to      io.Writer
	report  func(backend.Progress)
	step    string
	last    []string
	partial string
	failed  error // of writing the log
}

func newBuildLog(to io.Writer, report func(backend.Progress)) *buildLog {
	report(backend.Progress{Stage: "build"})
	return &buildLog{to: to, report: report}
}

func (l *buildLog) see(m message) {
	text := m.Stream
	if text == "" && m.Status != "" { // the base image is pulled
		text = m.Status + "\n"
		if m.Progress.Total > 0 {
			return
		}
	}
	if text == "" {
		return
	}
	if l.to != nil && l.failed == nil {
		if _, err := io.WriteString(l.to, text); err != nil {
			l.failed = fmt.Errorf("write the build's log: %w", err)
		}
	}
	l.partial += text
	for {
		line, rest, ended := strings.Cut(l.partial, "\n")
		if !ended {
			break
		}
		l.partial = rest
		l.line(line)
	}
	if len(l.partial) > maxPartial {
		l.line(l.partial)
		l.partial = ""
	}
}

func (l *buildLog) line(line string) {
	if len(line) > maxLastLine {
		line = line[:maxLastLine] + "..."
	}
	line = clean(line)
	if line == "" {
		return
	}
	l.last = append(l.last, line)
	if len(l.last) > lastLines {
		l.last = l.last[1:]
	}
	m := stepLine().FindStringSubmatch(line)
	if m == nil {
		return
	}
	l.step = line
	at, _ := strconv.ParseInt(m[1], 10, 64) // four digits at most
	of, _ := strconv.ParseInt(m[2], 10, 64)
	l.report(backend.Progress{Stage: "build", Message: m[3], Current: at, Total: of})
}

// explain makes the error of a build that did not succeed.
func (l *buildLog) explain(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if client.IsErrConnectionFailed(err) || errors.Is(err, backend.ErrInvalid) || errors.Is(err, errChanged) {
		return err
	}
	l.line(l.partial)
	return &BuildError{Step: l.step, Message: clean(err.Error()), Last: l.last}
}
