package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
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

// maxHistory and maxHistoryLine bound the file of lines, the latter in bytes.
const (
	maxHistory     = 1000
	maxHistoryLine = 4096
)

// A history is the lines typed before, the newest last, kept in a file of the user's
// own. Where there can be no file, it is that of the session.
type history struct {
	file   string
	lines  []string
	silent bool // what is typed now is no code
	added  bool
}

func loadHistory(language string) *history {
	h := &history{}
	dir, err := os.UserCacheDir()
	if err != nil {
		return h
	}
	h.file = filepath.Join(dir, "llmsandbox", "repl-"+language+".history")
	info, err := os.Stat(h.file)
	if err != nil || !info.Mode().IsRegular() || info.Size() > maxHistory*maxHistoryLine {
		return h // nothing to go on from
	}
	text, err := os.ReadFile(h.file)
	if err != nil {
		return h
	}
	for line := range strings.Lines(string(text)) {
		h.Add(strings.TrimRight(line, "\n"))
	}
	h.added = false
	return h
}

// Add is called with every line that was typed.
func (h *history) Add(line string) {
	if h.silent || strings.TrimSpace(line) == "" || len(line) > maxHistoryLine || len(h.lines) > 0 && h.lines[len(h.lines)-1] == line {
		return
	}
	h.lines = append(h.lines, line)
	h.lines = h.lines[max(0, len(h.lines)-maxHistory):]
	h.added = true
}

// Len is how many lines there are.
func (h *history) Len() int { return len(h.lines) }

// At returns a line, counted from the newest.
func (h *history) At(i int) string { return h.lines[len(h.lines)-1-i] }

// save writes the file when there is something new.
func (h *history) save() error {
	if !h.added || h.file == "" {
		return nil
	}
	if err := os.MkdirAll(filepath.Dir(h.file), 0o700); err != nil {
		return fmt.Errorf("keep the history: %w", err)
	}
	if err := os.WriteFile(h.file, []byte(strings.Join(h.lines, "\n")+"\n"), 0o600); err != nil {
		return fmt.Errorf("keep the history: %w", err)
	}
	h.added = false
	return nil
}

// incomplete guesses whether a cell goes on in the next line: a bracket is open, a line
// ends in a backslash, or a block has begun; an empty line ends any but the first two.
// A guess that is wrong costs the user an empty line, or an error of the language's.
func incomplete(language, code string) bool {
	last := code[strings.LastIndexByte(code, '\n')+1:]
	if strings.HasSuffix(last, `\`) {
		return true
	}
	if strings.TrimSpace(last) == "" {
		return false
	}
	if language != "bash" && openBrackets(code, language) > 0 {
		return true
	}
	switch language {
	case "python":
		first := code[:len(code)-len(strings.TrimLeft(code, " \t\n"))]
		block := strings.Contains(code, "\n") && unicode.IsSpace(rune(last[0]))
		return strings.HasSuffix(strings.TrimSpace(last), ":") || block || strings.HasPrefix(strings.TrimPrefix(code, first), "@") && !strings.Contains(code, "\n")
	case "bash":
		return count(code, "if", "case", "do", "{") > count(code, "fi", "esac", "done", "}")
	case "ruby":
		return count(code, "def", "class", "module", "do", "begin", "case", "if", "unless", "while") > count(code, "end")
	}
	return false
}

// openBrackets is how many brackets are open at the end, outside of strings and comments.
func openBrackets(code, language string) int {
	comment := "//"
	if language == "python" || language == "r" || language == "ruby" {
		comment = "#"
	}
	open, quote := 0, byte(0)
	for i := 0; i < len(code); i++ {
		c := code[i]
		switch {
		case quote != 0 && c == '\\':
			i++
		case quote != 0 && (c == quote || c == '\n' && quote != '`'):
			quote = 0
		case quote != 0:
		case c == '"' || c == '\'' || c == '`':
			quote = c
		case strings.HasPrefix(code[i:], comment):
			for i < len(code) && code[i] != '\n' {
				i++
			}
		case c == '(' || c == '[' || c == '{':
			open++
		case c == ')' || c == ']' || c == '}':
			open--
		}
	}
	return open
}

// count returns how often words of a list begin a command of the code.
func count(code string, list ...string) int {
	n := 0
	for _, line := range strings.Split(code, "\n") {
		for _, word := range strings.FieldsFunc(line, func(r rune) bool { return unicode.IsSpace(r) || r == ';' }) {
			if slices.Contains(list, word) {
				n++
			}
		}
	}
	return n
}
