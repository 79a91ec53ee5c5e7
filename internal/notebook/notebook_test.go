package notebook

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// whole has something of all that a notebook can have.
const whole = `{
 "cells": [
  {
   "attachments": {
    "a.png": {
     "image/png": "iVBORw0KGgo="
    }
   },
   "cell_type": "markdown",
   "id": "intro",
   "metadata": {
    "number": 12345678901234567890
   },
   "source": [
    "# Title <b>\n"
   ]
  },
  {
   "cell_type": "raw",
   "id": "raw",
   "metadata": {},
   "source": "x = 0"
  },
  {
   "cell_type": "code",
   "execution_count": 7,
   "id": "code",
   "metadata": {
    "tags": [
     "raises-exception"
    ]
   },
   "outputs": [
    {
     "name": "stdout",
     "output_type": "stream",
     "text": "stale"
    }
   ],
   "source": [
    "x = 6\n",
    "x * 7"
   ]
  },
  {
   "cell_type": "code",
   "execution_count": null,
   "id": "blank",
   "metadata": {},
   "outputs": [],
   "source": " \n"
  }
 ],
 "metadata": {
  "kernelspec": {
   "display_name": "Python 3",
   "language": "python",
   "name": "python3"
  },
  "unknown": [
   1,
   2.50,
   "é"
  ]
 },
 "nbformat": 4,
 "nbformat_minor": 5
}
`

func parsed(t testing.TB, text string) *Notebook {
	t.Helper()
	n, err := Parse([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func encoded(t testing.TB, n *Notebook) string {
	t.Helper()
	data, err := n.Encode()
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

func TestWhatIsNotExecutedStays(t *testing.T) {
	n := parsed(t, "\xef\xbb\xbf"+whole)
	if got := encoded(t, n); got != whole {
		t.Errorf("got %s, want %s", got, whole)
	}
	code := n.Code()
	if len(code) != 1 || code[0].Number != 3 || code[0].Source != "x = 6\nx * 7" || !code[0].Tagged(TagRaises) || code[0].Tagged(TagSkip) {
		t.Errorf("code cells %+v, want the third one with its tag only", code)
	}
	n.Clear()
	want := strings.Replace(strings.Replace(whole, `"execution_count": 7`, `"execution_count": null`, 1), `[
    {
     "name": "stdout",
     "output_type": "stream",
     "text": "stale"
    }
   ]`, "[]", 1)
	if got := encoded(t, n); got != want {
		t.Errorf("cleared: %s, want %s", got, want)
	}
}

// everything are outputs of each kind.
var everything = []Output{
	Stream{"stdout", "a\n\nb"}, Stream{"stderr", "\x1b[31mé</script>\n"},
	Display{Forms{"image/png": "iVBORw0KGgo=", "text/plain": "figure", "image/svg+xml": "<svg/>"}},
	Value{3, Forms{"text/plain": "{}", "application/json": `{"a": [1, 2.50]}`, "application/vnd.x+json": "no JSON", "text/html": "<table>\n</table>"}},
	Error{"ValueError", "x", "line 1\nline 2\n"}, Error{"timeout", "too slow", ""},
}

func TestOutputs(t *testing.T) {
	n := parsed(t, whole)
	n.Code()[0].SetOutputs(3, everything)
	var got struct {
		Cells []struct {
			Count   int             `json:"execution_count"`
			Outputs json.RawMessage `json:"outputs"`
		}
	}
	text := encoded(t, n)
	if err := json.Unmarshal([]byte(text), &got); err != nil {
		t.Fatal(err)
	}
	want := `[{"name":"stdout","output_type":"stream","text":["a\n","\n","b"]},` +
		`{"name":"stderr","output_type":"stream","text":["\u001b[31mé</script>\n"]},` +
		`{"data":{"image/png":"iVBORw0KGgo=","image/svg+xml":["<svg/>"],"text/plain":["figure"]},"metadata":{},"output_type":"display_data"},` +
		`{"data":{"application/json":{"a":[1,2.50]},"text/html":["<table>\n","</table>"],"text/plain":["{}"]},"execution_count":3,"metadata":{},"output_type":"execute_result"},` +
		`{"ename":"ValueError","evalue":"x","output_type":"error","traceback":["line 1","line 2"]},` +
		`{"ename":"timeout","evalue":"too slow","output_type":"error","traceback":["timeout: too slow"]}]`
	if compact := string(raw(got.Cells[2].Outputs)); compact != want || got.Cells[2].Count != 3 {
		t.Errorf("got %d, %s, want 3, %s", got.Cells[2].Count, compact, want)
	}
	if again := encoded(t, parsed(t, text)); again != text {
		t.Errorf("read and written again: %s, want %s", again, text)
	}
}

func TestLanguage(t *testing.T) {
	for about, want := range map[string]string{
		`{}`: "", `{"kernelspec": {"name": "python3"}}`: "python", `{"kernelspec": {"name": "ir", "language": "R"}}`: "r",
		`{"language_info": {"name": "C++17"}}`: "c++", `{"kernelspec": {"name": "x"}, "language_info": {"name": "julia"}}`: "julia",
	} {
		if got := parsed(t, `{"nbformat": 4, "cells": [], "metadata": `+about+`}`).Language(); got != want {
			t.Errorf("%s: %q, want %q", about, got, want)
		}
	}
}

func TestRefused(t *testing.T) {
	cell := func(text string) string { return `{"nbformat": 4, "metadata": {}, "cells": [` + text + `]}` }
	for text, want := range map[string]string{
		"":                                  "not a JSON object",
		"[]":                                "not a JSON object",
		"print(1)":                          "not a JSON object",
		"{}":                                "no number nbformat",
		`{"nbformat": "4"}`:                 "no number nbformat",
		`{"nbformat": 4}`:                   "its cells",
		`{"nbformat": 3, "worksheets": []}`: "jupyter nbconvert --to notebook --nbformat 4",
		`{"nbformat": 4, "cells": {}}`:      "its cells",
		`{"nbformat": 4, "cells": [], "metadata": []}`: "its metadata",
		cell(`null`): "cell 1: it has no cell_type",
		cell(`{"cell_type": "markdown"}, {"cell_type": "code"}`):                                            "cell 2: its source",
		cell(`{"cell_type": "code", "source": [1]}`):                                                        "cell 1: its source",
		cell(`{"cell_type": "code", "source": "", "metadata": {"tags": 1}}`):                                "cell 1: its metadata",
		cell(`{"cell_type": "markdown", "x": ` + strings.Repeat("[", 200) + strings.Repeat("]", 200) + `}`): "more than 100 deep",
		cell(strings.Repeat(`{"cell_type": "raw"},`, maxCells) + `{"cell_type": "raw"}`):                    "more than 10000 cells",
		"{\"nbformat\": 4, \"cells\": [], \"x\": \"\xff\"}":                                                 "not UTF-8",
		strings.Repeat(" ", MaxSize) + "{}":                                                                 "larger than 64 MiB",
	} {
		if _, err := Parse([]byte(text)); !errors.Is(err, ErrInvalid) || !strings.Contains(err.Error(), want) {
			t.Errorf("%.80s: %v, want %v with %q", text, err, ErrInvalid, want)
		}
	}
	// Brackets in strings are text.
	if _, err := Parse([]byte(cell(`{"cell_type": "code", "source": "\"` + strings.Repeat("[", 200) + `"}`))); err != nil {
		t.Error(err)
	}
}

// Jupyter's own library finds nothing wrong with what is written.
func TestJupyterOpensIt(t *testing.T) {
	n := parsed(t, whole)
	n.Code()[0].SetOutputs(3, everything)
	name := filepath.Join(t.TempDir(), "a.ipynb")
	if err := os.WriteFile(name, []byte(encoded(t, n)), 0o600); err != nil {
		t.Fatal(err)
	}
	lib := t.TempDir()
	if out, err := exec.Command("python3", "-m", "pip", "install", "-q", "--target", lib, "nbformat").CombinedOutput(); err != nil {
		reason := fmt.Sprintf("nbformat cannot be installed: %v: %s", err, out)
		if os.Getenv("LLMSANDBOX_REQUIRE") == "1" {
			t.Fatal(reason)
		}
		t.Skip(reason)
	}
	check := exec.Command("python3", "-c", "import sys, nbformat\nn = nbformat.read(sys.argv[1], as_version=4)\nnbformat.validate(n)\nprint(n.cells[2].outputs[0].text)", name)
	check.Env = append(os.Environ(), "PYTHONPATH="+lib)
	if out, err := check.CombinedOutput(); err != nil || string(out) != "a\n\nb\n" {
		t.Errorf("%v: %s, want no error and the text of the first output", err, out)
	}
}

func FuzzParse(f *testing.F) {
	f.Add([]byte(whole))
	f.Add([]byte(`{"nbformat": 4, "cells": [{"cell_type": "code", "source": ["a", "b"]}]}`))
	f.Add([]byte(`{"nbformat": 3}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		n, err := Parse(data)
		if err != nil {
			if !errors.Is(err, ErrInvalid) {
				t.Fatalf("got %v, want %v", err, ErrInvalid)
			}
			return
		}
		n.Language()
		n.Clear()
		for _, c := range n.Code() {
			c.SetOutputs(1, append(everything, Stream{"stdout", c.Source}, Display{Forms{c.Source: c.Source, "x+json": c.Source}}))
		}
		text := encoded(t, n)
		if again := encoded(t, parsed(t, text)); again != text {
			t.Fatalf("read and written again: %s, want %s", again, text)
		}
	})
}
