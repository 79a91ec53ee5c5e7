package python

import "testing"

// TestValuesOfCells asks as a kernel's driver does.
func TestValuesOfCells(t *testing.T) {
	python := interpreter(t, "pandas", "matplotlib", "jinja2")
	p := newProgram(t, python)
	stdout, stderr, items := p.run(`
import llmsandbox_capture as c
import matplotlib.pyplot as plt
import pandas as pd

class Page:
    def _repr_html_(self): return "<b>x</b>"
    def _repr_png_(self): raise ValueError
class Liar:
    def __getattr__(self, name): return lambda: {"x": object()}
frame = pd.DataFrame({"a": [1, 2]})
from llmsandbox_capture.values import _forms as forms_of
print(forms_of(1), forms_of(Page()), forms_of(Page), forms_of(Liar()))
forms = forms_of(frame)
print(sorted(forms), forms["text/csv"], "<table" in forms["text/html"])
print(sorted(forms_of(frame.style)))
print(c.display(frame), c.display(1), c.publish({"text/plain": "p"}), c.publish({"image/png": "iVBORw0KGgo=", "text/plain": "p"}))
fig, ax = plt.subplots()
print(c.show(fig), c.show(3))
c.end_of_cell()
print(plt.get_fignums())
c.show(fig)
plt.plot([1])
c.end_of_cell()
c.end_of_cell()
`)
	want := `{} {'text/html': '<b>x</b>'} {} {}
['text/csv', 'text/html'] ,a
0,1
1,2
 True
['text/csv', 'text/html']
True False True True
True False
[]
`
	if stdout != want || stderr != "" {
		t.Errorf("stdout\n%s, want\n%s, stderr %s", stdout, want, stderr)
	}
	if len(items) == 0 {
		t.Fatalf("nothing was captured: len(items) = %v, want items not empty", len(items))
	}
	if got, want := names(items), "display-1.html text/html, display-2.txt text/plain, display-3.png image/png, figure-1.png image/png, figure-2.png image/png, figure-3.png image/png"; got != want {
		t.Errorf("captured %s, want %s", got, want)
	}
	if len(items[0].also) != 1 || string(items[0].also[0]) != ",a\n0,1\n1,2\n" || items[0].Source != "pandas" {
		t.Errorf("%+v, want len(items[0].also) = 1, items[0].also[0] = \",a\\n0,1\\n1,2\\n\", Source = \"pandas\"", items[0])
	}
	if p.dropped() != "" {
		t.Errorf("dropped %s, want empty", p.dropped())
	}
}
