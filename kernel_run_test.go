package llmsandbox

import "testing"

func TestOutputBudget(t *testing.T) {
	b := outputBudget{left: 5, limited: true, over: make(chan struct{})}
	out, errs := newCapture(5, nil), newCapture(5, nil)
	w, e := b.count(out), b.count(errs)
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
	if out.text() != "abc" || out.cut() || errs.text() != "de" || !errs.cut() {
		t.Errorf("%q %v, %q %v, want text = \"abc\", out.cut() = false, text = \"de\", errs.cut() = true", out.text(), out.cut(), errs.text(), errs.cut())
	}
	free := outputBudget{over: make(chan struct{})}
	if n := free.grant(1 << 30); n != 1<<30 {
		t.Errorf("no limit grants %d, want 1 GiB", n)
	}
}
