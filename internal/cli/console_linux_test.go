package cli

import (
	"fmt"
	"io"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/sys/unix"

	"github.com/llmsandbox/llmsandbox/backend"
)

// openTerminal opens a new terminal: ours and the program's end.
func openTerminal(t *testing.T, columns int) (ours, programs *os.File) {
	t.Helper()
	fd, err := unix.Open("/dev/ptmx", unix.O_RDWR|unix.O_NOCTTY|unix.O_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	ours = os.NewFile(uintptr(fd), "terminal")
	t.Cleanup(func() { _ = ours.Close() })
	if err := unix.IoctlSetPointerInt(fd, unix.TIOCSPTLCK, 0); err != nil {
		t.Fatal(err)
	}
	n, err := unix.IoctlGetInt(fd, unix.TIOCGPTN)
	if err != nil {
		t.Fatal(err)
	}
	if programs, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", n), os.O_RDWR|unix.O_NOCTTY, 0); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = programs.Close() })
	resize(t, ours, columns)
	return ours, programs
}

func resize(t *testing.T, terminal *os.File, columns int) {
	t.Helper()
	size := &unix.Winsize{Row: 24, Col: uint16(columns)}
	if err := unix.IoctlSetWinsize(int(terminal.Fd()), unix.TIOCSWINSZ, size); err != nil {
		t.Fatal(err)
	}
}

// A consoleTest is a console on a terminal or a pipe. Its time is that of a bubble.
type consoleTest struct {
	*console
	t    *testing.T
	read chan string
}

// endOfOutput is written after what is to be read.
const endOfOutput = "\x00"

// reading reads a file from outside of the bubble, so that it is never full.
func reading(from io.Reader) chan string {
	read := make(chan string, 1)
	go func() {
		var got strings.Builder
		buf := make([]byte, 4096)
		for {
			n, err := from.Read(buf)
			if err != nil {
				close(read)
				return
			}
			got.Write(buf[:n])
			if text, ended := strings.CutSuffix(got.String(), endOfOutput); ended {
				got.Reset()
				read <- text
			}
		}
	}()
	return read
}

// wrote returns what has been written since the last call.
func (c *consoleTest) wrote() string {
	c.t.Helper()
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, err := c.f.WriteString(endOfOutput); err != nil {
		c.t.Fatal(err)
	}
	return <-c.read
}

func (c *consoleTest) want(want string) {
	c.t.Helper()
	if got := c.wrote(); got != want {
		c.t.Errorf("wrote %q, want %q", got, want)
	}
}

// after lets time pass.
func (c *consoleTest) after(d time.Duration) {
	time.Sleep(d) // a bubble's
	synctest.Wait()
}

// onTerminal tests a console on a terminal.
func onTerminal(t *testing.T, columns int, test func(c *consoleTest)) {
	t.Setenv("TERM", "xterm")
	t.Setenv("LC_ALL", "C")
	ours, programs := openTerminal(t, columns)
	read := reading(ours)
	synctest.Test(t, func(t *testing.T) { test(&consoleTest{&console{f: programs}, t, read}) })
}

var (
	installing = backend.Progress{Stage: "install", Message: "numpy"}
	installed  = backend.Progress{Stage: "install", Message: "numpy", Done: true}
	failed     = backend.Progress{Stage: "install", Message: "numpy", Done: true, Error: "broken"}
)

func printed(p backend.Progress, line string) backend.Progress {
	p.Output = line
	return p
}

const wiped = "\r\x1b[K\x1b[J"

func drawn(line string) string { return "\r\x1b[?7l" + line + "\x1b[J\x1b[?7h\r" }

func TestStepOnTerminal(t *testing.T) {
	onTerminal(t, 80, func(c *consoleTest) {
		c.show(installing)
		c.after(showAfter - 1)
		c.want("")
		c.after(1)
		c.want(drawn("/ Installing numpy (0.1 s)"))
		c.after(drawEvery)
		c.want(drawn("- Installing numpy (0.2 s)"))
		c.show(printed(installing, "Collecting numpy"))
		c.want("")
		c.after(drawEvery)
		c.want(drawn(`\ Installing numpy (0.3 s) Collecting numpy`))
		c.after(time.Minute)
		c.wrote()
		c.show(installed)
		c.want(wiped + "Installed numpy in 1 min 0 s\r\n")
		c.after(time.Hour)
		c.want("")
	})
}

func TestShortStepIsNotDrawn(t *testing.T) {
	onTerminal(t, 80, func(c *consoleTest) {
		end := c.begin("Starting the sandbox")
		c.after(showAfter - 1)
		end()
		c.after(time.Hour)
		c.want("")
	})
}

func TestStepThatFails(t *testing.T) {
	onTerminal(t, 80, func(c *consoleTest) {
		c.show(installing)
		c.after(showAfter)
		c.wrote()
		c.show(failed)
		c.want(wiped)
		c.show(backend.Progress{Stage: "prepare", Message: "a cache", Done: true, Error: "broken"})
		c.want("\x1b[33mwarning:\x1b[0m Preparing a cache failed: broken\r\n")
	})
}

func TestStepsInSteps(t *testing.T) {
	onTerminal(t, 80, func(c *consoleTest) {
		pull := backend.Progress{Stage: "pull", Message: "x:1", Current: 5 << 20, Total: 20 << 20}
		end := c.begin("Starting the sandbox")
		c.show(installing)
		c.after(showAfter)
		c.want(drawn("/ Installing numpy (0.1 s)"))
		c.show(pull)
		c.after(drawEvery)
		c.want(drawn("- Pulling x:1 (0.1 s) [#####---------------] 5 MiB of 20 MiB"))
		pull.Done = true
		c.show(pull)
		c.want(wiped + "Pulled x:1 in 0.1 s\r\n")
		c.after(drawEvery)
		c.want(drawn(`\ Installing numpy (0.3 s)`))
		c.show(installed)
		c.want(wiped + "Installed numpy in 0.3 s\r\n")
		c.show(backend.Progress{Stage: "build", Message: "the image", Current: 3, Total: 6})
		c.after(drawEvery)
		c.want(drawn("| Building the image (0.1 s) [##########----------] 3/6"))
		end() // what is in it has ended, too
		c.want(wiped)
		c.after(time.Hour)
		c.want("")
	})
}

// The program's output is as it was: what is drawn goes before it, and comes back only on a line
// that is empty.
func TestStepAndOutput(t *testing.T) {
	onTerminal(t, 80, func(c *consoleTest) {
		write := func(text string) {
			if n, err := c.writeOutput(c.f, []byte(text)); n != len(text) || err != nil {
				t.Errorf("n = %d, err = %v, want %d, no error", n, err, len(text))
			}
		}
		c.show(installing)
		c.after(showAfter)
		c.want(drawn("/ Installing numpy (0.1 s)"))
		write("one")
		c.want(wiped + "one")
		c.after(time.Hour)
		c.want("")
		write(" line\n")
		c.after(drawEvery)
		if got, want := c.wrote(), " line\r\n\r"; !strings.HasPrefix(got, want) || !strings.Contains(got, "Installing") {
			t.Errorf("wrote %q, want it to begin with %q and to have the step", got, want)
		}
		write("two")
		c.show(installed)
		c.want(wiped + "two\r\nInstalled numpy in 60 min 0 s\r\n")
		fmt.Fprintln(c, "message")
		write("\n")
		write("")
		fmt.Fprintln(c, "message")
		c.want("message\r\n\r\nmessage\r\n")
	})
}

// A line never reaches the last column, however narrow the terminal becomes, and has no bytes
// that move the cursor but our own.
func TestStepFitsAndIsHarmless(t *testing.T) {
	hostile := backend.Progress{
		Stage: "load", Message: "\x1b]0;owned\x07a\nb\b\b\r\x9b2J 数据 " + strings.Repeat("x", 500), Current: 1, Total: 2, Output: "\x1b[2J\ttool\x00\n",
	}
	ours, programs := openTerminal(t, 300)
	t.Setenv("TERM", "xterm")
	t.Setenv("LC_ALL", "C.UTF-8")
	read := reading(ours)
	synctest.Test(t, func(t *testing.T) {
		c := &consoleTest{&console{f: programs}, t, read}
		c.show(hostile)
		c.after(showAfter)
		c.wrote()
		for columns := 300; columns > 0; columns-- {
			resize(t, ours, columns)
			c.after(drawEvery)
			line, ended := strings.CutSuffix(c.wrote(), "\x1b[J\x1b[?7h\r")
			line, began := strings.CutPrefix(line, "\r\x1b[?7l")
			if !began || !ended || strings.ContainsFunc(line, func(r rune) bool { return r < ' ' || r >= 0x7f && r <= 0x9f }) || strings.Contains(line, "owned") {
				t.Fatalf("%d columns: drawn as %q, want printable text", columns, line)
			}
			if n := len([]rune(line)) + strings.Count(line, "数") + strings.Count(line, "据"); n >= columns && columns > 3 {
				t.Errorf("%d columns: %q has %d", columns, line, n)
			}
		}
		c.close()
		c.want(wiped)
	})
}

func TestConsoleFlags(t *testing.T) {
	scene := func(c *consoleTest) {
		end := c.begin("Starting the sandbox")
		c.show(installing)
		c.show(printed(installing, "Collecting \x1b[31mnumpy"))
		c.after(3 * time.Second)
		c.show(installed)
		end()
		c.show(backend.Progress{Stage: "start", Message: "the pod"})
		c.show(backend.Progress{Stage: "start", Message: "the pod", Done: true})
		c.note("a note")
		fmt.Fprintln(c, "an error")
	}
	for name, test := range map[string]struct {
		quiet, verbose, terminal bool
		term                     string
		want                     string
	}{
		"a pipe":             {want: "Installed numpy in 3.0 s\na note\nan error\n"},
		"a pipe, verbose":    {verbose: true, want: "Collecting numpy\nInstalled numpy in 3.0 s\na note\nan error\n"},
		"a pipe, quiet":      {quiet: true, want: "an error\n"},
		"both":               {quiet: true, verbose: true, want: "an error\n"},
		"a terminal, quiet":  {terminal: true, term: "xterm", quiet: true, want: "an error\r\n"},
		"a dumb terminal":    {terminal: true, term: "dumb", want: "Installed numpy in 3.0 s\r\na note\r\nan error\r\n"},
		"a dumb one, quiet":  {terminal: true, term: "dumb", quiet: true, want: "an error\r\n"},
		"a terminal, at all": {terminal: true, term: "xterm", verbose: true, want: "Collecting numpy\r\n{steps}" + wiped + "Installed numpy in 3.0 s\r\na note\r\nan error\r\n"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Setenv("TERM", test.term)
			from, to, err := os.Pipe()
			if test.terminal {
				from, to = openTerminal(t, 80)
			}
			if err != nil {
				t.Fatal(err)
			}
			defer to.Close()
			read := reading(from)
			synctest.Test(t, func(t *testing.T) {
				c := &consoleTest{&console{f: to, quiet: test.quiet, verbose: test.verbose}, t, read}
				scene(c)
				got := c.wrote()
				before, after, steps := strings.Cut(test.want, "{steps}")
				if !steps && got != test.want || !strings.HasPrefix(got, before) || !strings.HasSuffix(got, after) {
					t.Errorf("wrote %q, want %q", got, test.want)
				}
			})
		})
	}
}

func TestConsoleShares(t *testing.T) {
	_, terminal := openTerminal(t, 80)
	_, other := openTerminal(t, 80)
	again, err := os.OpenFile(terminal.Name(), os.O_WRONLY|unix.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer again.Close()
	c := &console{f: terminal}
	for name, test := range map[string]struct {
		f    *os.File
		want bool
	}{"itself": {terminal, true}, "opened again": {again, true}, "another": {other, false}} {
		if got := c.shares(test.f); got != test.want {
			t.Errorf("%s: shares = %v, want %v", name, got, test.want)
		}
	}
}

func TestFit(t *testing.T) {
	for _, test := range []struct {
		text    string
		columns int
		want    string
	}{
		{"", 0, ""}, {"abc", 3, "abc"}, {"abcd", 3, "..."}, {"abcdef", 5, "ab..."}, {"abc", 1, "."}, {"abc", -5, ""},
		{"数据", 4, "数据"}, {"数据集", 5, "数..."}, {"é", 1, "."},
	} {
		if got := fit(test.text, test.columns); got != test.want {
			t.Errorf("fit(%q, %d) = %q, want %q", test.text, test.columns, got, test.want)
		}
	}
}
