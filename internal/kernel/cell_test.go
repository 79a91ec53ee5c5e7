package kernel

import (
	"strings"
	"testing"
)

// keptOutput is an Output in memory.
type keptOutput struct {
	strings.Builder
	cut bool
}

func (o *keptOutput) Truncate() { o.cut = true }

func TestOutputBudget(t *testing.T) {
	b := outputBudget{left: 5, limited: true, over: make(chan struct{})}
	var out, errs keptOutput
	w, e := b.count(&out), b.count(&errs)
	for _, part := range []string{"ab", "c"} {
		if n, err := w.Write([]byte(part)); n != len(part) || err != nil {
			t.Fatalf("n = %v, err = %v, want n = %v, no error", n, err, len(part))
		}
	}
	select {
	case <-b.over:
		t.Fatal("the output budget is over after 3 of 5 bytes, want it open")
	default:
	}
	for range 2 {
		if n, err := e.Write([]byte("defg")); n != 4 || err != nil {
			t.Fatalf("n = %v, err = %v, want n = 4, no error", n, err)
		}
	}
	<-b.over
	if out.String() != "abc" || out.cut || errs.String() != "de" || !errs.cut {
		t.Errorf("%q %v, %q %v, want \"abc\" false, \"de\" true", out.String(), out.cut, errs.String(), errs.cut)
	}
	free := outputBudget{over: make(chan struct{})}
	if n := free.grant(1 << 30); n != 1<<30 {
		t.Errorf("no limit grants %d, want 1 GiB", n)
	}
}

func TestParseTag(t *testing.T) {
	tag := Tag{Kernel: "a1", Language: "python", Run: "b2", Mark: NewMark(), Artifacts: true}
	if got, ok := ParseTag(tag.String()); !ok || got != tag {
		t.Errorf("ParseTag(%q) = %+v, %v, want %+v", tag, got, ok, tag)
	}
	for _, text := range []string{"", "kernel", "kernel a python ../b m -", "kernel a python b/c m -", "kernel a python  m -", "ahead-1", "kernel a b c d e f"} {
		if got, ok := ParseTag(text); ok {
			t.Errorf("ParseTag(%q) = %+v, want none", text, got)
		}
	}
}
