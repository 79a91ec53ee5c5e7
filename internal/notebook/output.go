package notebook

import (
	"cmp"
	"encoding/json"
	"strings"
)

// An Output is something that a code cell has produced.
type Output interface{ json() any }

// A Stream is text that a cell has written to "stdout" or "stderr".
type Stream struct{ Name, Text string }

// A Display is something shown: one thing in several forms.
type Display struct{ Forms Forms }

// A Value is that of a cell's last expression.
type Value struct {
	Count int
	Forms Forms
}

// An Error is what a cell ended with.
type Error struct{ Name, Message, Traceback string }

// Forms are the forms of one thing by media type. Those that are not text are base64.
type Forms map[string]string

type bundle map[string]any

func (f Forms) bundle() bundle {
	b := bundle{}
	for mime, data := range f {
		switch {
		case mime == "application/json" || strings.HasSuffix(mime, "+json"):
			if json.Valid([]byte(data)) {
				b[mime] = json.RawMessage(data)
			}
		case strings.HasPrefix(mime, "text/") || mime == "image/svg+xml":
			b[mime] = lines(data)
		default:
			b[mime] = data
		}
	}
	return b
}

// lines is a text as a list of lines, which is how Jupyter writes it.
func lines(text string) []string {
	list := strings.SplitAfter(text, "\n")
	if list[len(list)-1] == "" {
		list = list[:len(list)-1]
	}
	return list
}

func (s Stream) json() any {
	return map[string]any{"output_type": "stream", "name": s.Name, "text": lines(s.Text)}
}

func (d Display) json() any {
	return map[string]any{"output_type": "display_data", "data": d.Forms.bundle(), "metadata": struct{}{}}
}

func (v Value) json() any {
	return map[string]any{"output_type": "execute_result", "data": v.Forms.bundle(), "metadata": struct{}{}, "execution_count": v.Count}
}

func (e Error) json() any {
	e.Traceback = cmp.Or(e.Traceback, e.Name+": "+e.Message)
	return map[string]any{"output_type": "error", "ename": e.Name, "evalue": e.Message, "traceback": strings.Split(strings.TrimRight(e.Traceback, "\n"), "\n")}
}

// SetOutputs replaces a cell's outputs. count is the number of its execution; 0: it was not executed.
func (c *Cell) SetOutputs(count int, outputs []Output) {
	list := make([]any, len(outputs))
	for i, o := range outputs {
		list[i] = o.json()
	}
	c.fields["outputs"] = raw(list)
	c.fields["execution_count"] = json.RawMessage("null")
	if count > 0 {
		c.fields["execution_count"] = raw(count)
	}
}
