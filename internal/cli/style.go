package cli

import (
	"io"
	"os"
)

// A colour is how a word stands out on a terminal.
type colour string

const (
	red    colour = "31"
	green  colour = "32"
	yellow colour = "33"
)

// paint colours text that goes to w, if that is a terminal that wants colours:
// neither NO_COLOR nor TERM=dumb is set.
func paint(w io.Writer, c colour, text string) string {
	f, ok := w.(*os.File)
	if !ok || !isTerminal(f) || os.Getenv("NO_COLOR") != "" || os.Getenv("TERM") == "dumb" {
		return text
	}
	return "\x1b[" + string(c) + "m" + text + "\x1b[0m"
}
