package cli

import (
	"cmp"
	"fmt"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/spf13/pflag"
	"golang.org/x/term"

	"github.com/llmsandbox/llmsandbox/backend"
	"github.com/llmsandbox/llmsandbox/internal/bytesize"
	"github.com/llmsandbox/llmsandbox/internal/termsafe"
)

// stderr is where a command's own messages go.
var stderr = &console{f: os.Stderr}

// A console writes messages between the output of a program, and shows the step under way: on a
// terminal by a line that is drawn again and again, and then wiped. The cursor rests at the
// beginning of that line, so that a terminal that wraps it anew when its size changes leaves
// nothing above it. A console is safe for concurrent use.
type console struct {
	f              *os.File
	quiet, verbose bool // flags

	mu      sync.Mutex
	midline bool   // a program's output has not ended its last line
	steps   []step // under way, the innermost last
	timer   *time.Timer
	drawn   bool
	frame   int
}

// A step is something long.
type step struct {
	label  string           // unless it is of at
	at     backend.Progress // the last report
	output string           // the last line of its tool
	began  time.Time
}

func (c *console) register(set *pflag.FlagSet) {
	set.BoolVarP(&c.quiet, "quiet", "q", false, "print errors only: no progress, summaries or warnings")
	set.BoolVarP(&c.verbose, "verbose", "v", false, "print the output of package tools and image builds")
}

// shares reports whether a file is the same terminal, pipe or file.
func (c *console) shares(f *os.File) bool {
	ours, err := c.f.Stat()
	if err != nil {
		return false
	}
	theirs, err := f.Stat()
	return err == nil && os.SameFile(ours, theirs)
}

// Write writes a message, on a line of its own.
func (c *console) Write(p []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.wipe()
	if c.midline {
		c.midline = false
		if _, err := c.f.WriteString("\n"); err != nil {
			return 0, err
		}
	}
	return c.f.Write(p)
}

// writeOutput writes a program's output to f, which c shares.
func (c *console) writeOutput(f *os.File, p []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.wipe()
	if len(p) > 0 {
		c.midline = p[len(p)-1] != '\n'
	}
	return f.Write(p)
}

// note prints a message that --quiet leaves out.
func (c *console) note(message string) {
	if !c.quiet {
		fmt.Fprintln(c, message)
	}
}

// begin shows that something goes on until end is called.
func (c *console) begin(label string) (end func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.push(step{label: label})
	depth := len(c.steps) - 1
	return func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.cut(depth)
	}
}

// show is of the shape of llmsandbox.Options.Progress.
func (c *console) show(p backend.Progress) {
	took := c.take(p)
	switch {
	case p.Output != "" && c.verbose:
		c.note(oneLine(p.Output))
	case p.Error != "" && p.Stage == "prepare": // of others the call's error tells
		c.note(paint(c, yellow, "warning:") + " " + termsafe.String(p.String()))
	case p.Done && p.Error == "" && p.Stage != "start": // every sandbox of a cluster starts a pod
		c.note(fit(oneLine(p.String()), maxSummary) + took)
	}
}

// take notes a report, and returns how long its step has taken.
func (c *console) take(p backend.Progress) string {
	c.mu.Lock()
	defer c.mu.Unlock()
	i := len(c.steps) - 1
	for i >= 0 && (c.steps[i].label != "" || c.steps[i].at.Stage != p.Stage) {
		i--
	}
	if i < 0 {
		if p.Done {
			return ""
		}
		c.push(step{})
		i = len(c.steps) - 1
	}
	s := &c.steps[i]
	s.at, s.output = p, cmp.Or(p.Output, s.output)
	took := " in " + seconds(time.Since(s.began))
	if p.Done {
		c.cut(i)
	}
	return took
}

// close ends all steps.
func (c *console) close() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.cut(0)
}

// maxSummary bounds what is said of a step that is over, in columns.
const maxSummary = 100

const (
	showAfter = 150 * time.Millisecond // a shorter step is not shown
	drawEvery = 100 * time.Millisecond
)

// push adds a step. c.mu is held.
func (c *console) push(s step) {
	s.began = time.Now()
	c.steps = append(c.steps, s)
	if c.timer == nil && !c.quiet && isTerminal(c.f) && !dumb() {
		c.timer = time.AfterFunc(showAfter, c.draw)
	}
}

// cut ends all steps but the outermost n. c.mu is held.
func (c *console) cut(n int) {
	if n >= len(c.steps) {
		return
	}
	c.steps = c.steps[:n]
	if n == 0 && c.timer != nil {
		c.timer.Stop()
		c.timer = nil
		c.wipe()
	}
}

// wipe takes the step off the screen: its line first, since some terminals keep what is erased from
// their first cell on, and what it was wrapped into. c.mu is held. Where it fails, so does what is
// written next.
func (c *console) wipe() {
	if c.drawn {
		c.drawn = false
		_, _ = c.f.WriteString("\r\x1b[K\x1b[J")
	}
}

// draw draws the innermost step. It would overwrite a line that a program has begun.
func (c *console) draw() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.timer == nil {
		return
	}
	c.timer.Reset(drawEvery)
	if c.midline {
		return
	}
	width, _, err := term.GetSize(int(c.f.Fd()))
	if err != nil || width <= 0 {
		width = 80
	}
	signs := spinner()
	c.frame++
	line := c.steps[len(c.steps)-1].line(signs[c.frame%len(signs)], width-1) // the last column would wrap
	c.drawn = true
	// A terminal may have become narrower than it says yet, so it is not to wrap the line. One
	// that is gone is noticed by what follows.
	_, _ = c.f.WriteString("\r\x1b[?7l" + line + "\x1b[J\x1b[?7h\r")
}

// line is how a step looks on a terminal, in so many columns at most.
func (s step) line(sign string, width int) string {
	took := " (" + seconds(time.Since(s.began)) + ")"
	label := oneLine(cmp.Or(s.label, s.at.String()))
	text := fit(label, width-len("x ")-len(took)) + took
	switch {
	case s.at.Total > 0 && s.at.Stage == "build":
		text += fmt.Sprintf(" %s %d/%d", bar(s.at), s.at.Current, s.at.Total)
	case s.at.Total > 0:
		text += fmt.Sprintf(" %s %s of %s", bar(s.at), bytesize.Format(s.at.Current), bytesize.Format(s.at.Total))
	}
	if s.output != "" {
		text += " " + oneLine(s.output)
	}
	return sign + " " + fit(text, width-len("x "))
}

// bar draws how much of a step is done.
func bar(p backend.Progress) string {
	const cells = 20
	done := int(float64(cells) * min(max(float64(p.Current)/float64(p.Total), 0), 1))
	return "[" + strings.Repeat("#", done) + strings.Repeat("-", cells-done) + "]"
}

// fit cuts a text to so many columns. All but ASCII counts as two, which no terminal exceeds.
func fit(text string, columns int) string {
	const cut = "..."
	used, end := 0, 0
	for i, r := range text {
		if used+len(cut) <= columns {
			end = i
		}
		used++
		if r >= 0x80 {
			used++
		}
		if used > columns {
			return text[:end] + cut[:max(min(columns, len(cut)), 0)]
		}
	}
	return text
}

// seconds is a time as it is said.
func seconds(d time.Duration) string {
	switch {
	case d < 10*time.Second:
		return fmt.Sprintf("%.1f s", d.Seconds())
	case d < time.Minute:
		return fmt.Sprintf("%d s", int(d.Seconds()))
	}
	return fmt.Sprintf("%d min %d s", int(d.Minutes()), int(d.Seconds())%60)
}

// dumb reports a terminal on which nothing can be wiped.
func dumb() bool { return os.Getenv("TERM") == "dumb" }

// spinner are the signs that turn beside a step.
func spinner() []string {
	locale := strings.ToLower(cmp.Or(os.Getenv("LC_ALL"), os.Getenv("LC_CTYPE"), os.Getenv("LANG")))
	if strings.Contains(locale, "utf-8") || strings.Contains(locale, "utf8") {
		return []string{"⠋", "⠙", "⠹", "⠸", "⠼", "⠴", "⠦", "⠧", "⠇", "⠏"}
	}
	return []string{"|", "/", "-", `\`}
}
