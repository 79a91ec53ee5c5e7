package backendtest

import (
	"context"
	"strings"
	"testing"

	"github.com/llmsandbox/llmsandbox"
)

func (s *suite) acceptance69ChildrenAndInput(t *testing.T) {
	k := openKernel(t, s.shared(t), "", plainPython)
	c := cell(t, k, "import subprocess\n_ = subprocess.run('echo out; echo err >&2', shell=True)\nprint('after')", nil)
	if c.Stdout != "out\nafter\n" || c.Stderr != "err\n" {
		t.Errorf("children: %+v, want Stdout = \"out\\nafter\\n\", Stderr = \"err\\n\"", c)
	}
	// What comes after a cell is the next one's.
	cell(t, k, "p = subprocess.Popen('sleep 0.3; echo late', shell=True)", nil)
	if c := cell(t, k, "_ = p.wait()", nil); c.Stdout != "late\n" {
		t.Errorf("late output: %+v, want Stdout = \"late\\n\"", c)
	}
	var asked []string
	answer := &llmsandbox.CellOptions{Stdin: func(_ context.Context, prompt string, password bool) (string, error) {
		if password {
			prompt += "(hidden)"
		}
		asked = append(asked, prompt)
		return "Ann ä", nil
	}}
	if c := cell(t, k, "import getpass\n[input('name? '), getpass.getpass('word: ')]", answer); c.Value["text/plain"] != "['Ann ä', 'Ann ä']" {
		t.Errorf("input: %+v, want c.Value[\"text/plain\"] = \"['Ann ä', 'Ann ä']\"", c)
	}
	if strings.Join(asked, "|") != "name? |word: (hidden)" {
		t.Errorf("asked %q, want strings.Join(asked, \"|\") = \"name? |word: (hidden)\"", asked)
	}
	if c := cell(t, k, "input()", nil); c.Error == nil || c.Error.Name != "EOFError" {
		t.Errorf("without input: %+v, want Error not nil, Name = \"EOFError\"", c)
	}
	// A question can be interrupted; an answer that comes too late harms nothing.
	late := &llmsandbox.CellOptions{Stdin: func(ctx context.Context, _ string, _ bool) (string, error) {
		if err := k.Interrupt(ctx); err != nil {
			t.Errorf("interrupt a question: %v", err)
		}
		return "late", nil
	}}
	if c := cell(t, k, "input()", late); !c.Interrupted || c.StateLost {
		t.Errorf("an interrupted question: %+v, want Interrupted true, StateLost false", c)
	}
	wantValue(t, k, "1 + 1", "2")
}
