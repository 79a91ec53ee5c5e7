package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"time"
	"unicode"
	"unicode/utf8"

	"golang.org/x/term"

	"github.com/llmsandbox/llmsandbox"
	"github.com/llmsandbox/llmsandbox/internal/termsafe"
)

// completeTimeout bounds how long Tab may take.
const completeTimeout = 2 * time.Second

// A lineEditor reads cells and answers from the terminal. The terminal is only raw while
// a line is read, so that at other times Ctrl-C is a signal.
type lineEditor struct {
	ctx      context.Context
	kernel   *llmsandbox.Kernel
	terminal *term.Terminal
	history  *history
	dropped  bool // the line was dropped by Ctrl-C
	lines    []string
	reading  sync.Mutex
}

func newLineEditor(ctx context.Context, k *llmsandbox.Kernel) *lineEditor {
	e := &lineEditor{ctx: ctx, kernel: k, history: loadHistory(k.Info().Language)}
	e.terminal = term.NewTerminal(struct {
		io.Reader
		io.Writer
	}{(*keys)(e), os.Stdout}, "")
	e.terminal.History = e.history
	e.terminal.AutoCompleteCallback = e.complete
	return e
}

// keys reads the keyboard. Ctrl-C, which the terminal takes for an end, ends the line.
type keys lineEditor

func (k *keys) Read(p []byte) (int, error) {
	n, err := os.Stdin.Read(p)
	for i := range p[:n] {
		if p[i] == 3 {
			k.dropped, p[i] = true, '\r'
		}
	}
	return n, err
}

// read reads one line, in raw mode.
func (e *lineEditor) read(line func() (string, error)) (string, error) {
	e.reading.Lock()
	defer e.reading.Unlock()
	fd := int(os.Stdin.Fd())
	old, err := term.MakeRaw(fd)
	if err != nil {
		return "", fmt.Errorf("read from the terminal: %w", err)
	}
	defer term.Restore(fd, old) //nolint:errcheck // a terminal that is gone needs none
	if cols, rows, err := term.GetSize(fd); err == nil && cols > 0 {
		_ = e.terminal.SetSize(cols, rows) // as it was then
	}
	e.dropped = false
	text, err := line()
	if errors.Is(err, term.ErrPasteIndicator) {
		err = nil
	}
	return text, err
}

// cell reads a cell's lines. A dropped one is empty.
func (e *lineEditor) cell() (string, error) {
	e.lines = nil
	defer func() { e.lines = nil }()
	for prompt := ">>> "; ; prompt = "... " {
		e.terminal.SetPrompt(prompt)
		e.history.silent = false
		line, err := e.read(e.terminal.ReadLine)
		if e.dropped {
			return "", nil
		}
		if err != nil {
			return "", err
		}
		e.lines = append(e.lines, line)
		code := strings.Join(e.lines, "\n")
		if !incomplete(e.kernel.Info().Language, code) {
			return code, e.history.save()
		}
	}
}

// answer asks the user what a cell asks for.
func (e *lineEditor) answer(_ context.Context, prompt string, password bool) (string, error) {
	prompt = termsafe.String(prompt)
	line, err := e.read(func() (string, error) {
		e.history.silent = true
		if password {
			return e.terminal.ReadPassword(prompt)
		}
		e.terminal.SetPrompt(prompt)
		return e.terminal.ReadLine()
	})
	if e.dropped {
		return "", errors.Join(io.EOF, e.kernel.Interrupt(e.ctx))
	}
	return line, err
}

// complete answers Tab.
func (e *lineEditor) complete(line string, pos int, key rune) (string, int, bool) {
	if key != '\t' || e.history.silent {
		return "", 0, false
	}
	if strings.TrimSpace(line[:pos]) == "" {
		return line[:pos] + "    " + line[pos:], pos + 4, true
	}
	before := strings.Join(append(e.lines[:len(e.lines):len(e.lines)], ""), "\n")
	cursor := utf8.RuneCountInString(before + line[:pos])
	ctx, cancel := context.WithTimeout(e.ctx, completeTimeout)
	defer cancel()
	c, err := e.kernel.Complete(ctx, before+line, cursor)
	if err != nil || c.End != cursor || c.Start > c.End {
		return "", 0, false
	}
	matches := printable(c.Matches)
	replaced := cursor - c.Start
	stem := []rune(line[:pos])
	if len(matches) == 0 || replaced > len(stem) {
		return "", 0, false
	}
	head := string(stem[:len(stem)-replaced])
	common := commonPrefix(matches)
	if len(matches) > 1 && len(head+common) <= pos {
		e.list(matches)
		return "", 0, false
	}
	return head + common + line[pos:], len(head + common), true
}

const maxListed = 100

// list shows what a word could become.
func (e *lineEditor) list(matches []string) {
	more := ""
	if len(matches) > maxListed {
		more = fmt.Sprintf(" and %d more", len(matches)-maxListed)
		matches = matches[:maxListed]
	}
	_, _ = e.terminal.Write([]byte(strings.Join(matches, "  ") + more + "\n")) // to a terminal
}

// printable are the matches that can stand in a line: they come out of the sandbox.
func printable(list []string) []string {
	var out []string
	for _, s := range list {
		if s != "" && termsafe.String(s) == s && strings.IndexFunc(s, unicode.IsControl) < 0 {
			out = append(out, s)
		}
	}
	return out
}

func commonPrefix(list []string) string {
	common := []byte(list[0])
	for _, s := range list[1:] {
		for !bytes.HasPrefix([]byte(s), common) {
			common = common[:len(common)-1]
		}
	}
	for !utf8.Valid(common) {
		common = common[:len(common)-1]
	}
	return string(common)
}
