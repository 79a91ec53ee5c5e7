package cli

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

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
