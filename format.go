package llmsandbox

import (
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/llmsandbox/llmsandbox/internal/termsafe"
)

// String is the result in one line, without its output:
// "error, exit code 3, 21ms, stdout 6 bytes, stderr 0 bytes". It is safe to print on a
// terminal and at most a few hundred bytes long.
func (r Result) String() string {
	return summary(r.Status, r.ExitCode, r.Signal, r.Duration, r.Stdout, r.StdoutTruncated, r.Stderr, r.StderrTruncated, len(r.Artifacts), r.Reason)
}

// Format prints the result as String returns it; %+v prints every field, output included.
func (r Result) Format(s fmt.State, verb rune) {
	type fields Result
	format(s, verb, r.String(), fields(r))
}

// String is the cell in one line, without its output and value, as [Result.String].
func (c Cell) String() string {
	reason := c.Reason
	if c.Error != nil {
		reason = c.Error.Name + ": " + c.Error.Message
	}
	return summary(c.Status, c.ExitCode, c.Signal, c.Duration, c.Stdout, c.StdoutTruncated, c.Stderr, c.StderrTruncated, len(c.Artifacts), reason)
}

// Format prints the cell as String returns it; %+v prints every field, output included.
func (c Cell) Format(s fmt.State, verb rune) {
	type fields Cell
	format(s, verb, c.String(), fields(c))
}

// format prints short, or the fields for %+v and %#v.
func format(s fmt.State, verb rune, short string, fields any) {
	if verb == 'v' && (s.Flag('+') || s.Flag('#')) {
		fmt.Fprintf(s, fmt.FormatString(s, verb), fields)
		return
	}
	io.WriteString(s, short)
}

func summary(status Status, code int, signal string, took time.Duration, stdout string, outCut bool, stderr string, errCut bool, artifacts int, reason string) string {
	parts := []string{string(status)}
	add := func(format string, value any) { parts = append(parts, fmt.Sprintf(format, value)) }
	if code != noExitCode {
		add("exit code %d", code)
	}
	if signal != "" {
		add("%s", signal)
	}
	if took > 0 {
		add("%v", took.Round(time.Millisecond))
		add("stdout %s", size(len(stdout), outCut))
		add("stderr %s", size(len(stderr), errCut))
	}
	if artifacts > 0 {
		add("artifacts %d", artifacts)
	}
	line := strings.Join(parts, ", ")
	if reason != "" {
		line += ": " + oneLine(reason)
	}
	return line
}

func size(n int, truncated bool) string {
	if truncated {
		return fmt.Sprintf("%d bytes (truncated)", n)
	}
	return fmt.Sprintf("%d bytes", n)
}

// maxLine bounds a text from inside a sandbox where it is part of one line.
const maxLine = 200

// oneLine is text that may come from inside a sandbox as one line of bounded length.
func oneLine(text string) string {
	end := ""
	if len(text) > maxLine {
		text, end = strings.ToValidUTF8(text[:maxLine], ""), " ..."
	}
	return strings.Join(strings.Fields(termsafe.String(text)), " ") + end
}
