package python

import (
	_ "embed"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"
)

//go:embed testdata/forks.py
var forks string

func TestFiguresAreCaptured(t *testing.T) {
	python := interpreter(t, "matplotlib")
	const plt = "import matplotlib.pyplot as plt\n"
	cases := []struct{ name, code, want string }{
		{"shown", plt + "plt.plot([1, 2]); plt.show()", "figure-1.png image/png"},
		{"two at once", plt + "plt.figure(); plt.plot([1]); plt.figure(); plt.plot([2]); plt.show()", "figure-1.png image/png, figure-2.png image/png"},
		{"one after the other", plt + "plt.plot([1]); plt.show(); plt.plot([2]); plt.show()", "figure-1.png image/png, figure-2.png image/png"},
		{"subplots", plt + "plt.subplots(2, 2); plt.show()", "figure-1.png image/png"},
		{"nothing on it", plt + "plt.figure(); plt.show()", ""},
		{"never shown", plt + "plt.plot([1])", ""},
		{"saved", plt + "plt.plot([1]); plt.savefig('a.png')", "a.png image/png"},
		{"saved without an ending", plt + "plt.plot([1]); plt.savefig('a')", "a.png image/png"},
		{"saved and shown", plt + "plt.plot([1]); plt.savefig('a.png'); plt.show()", "a.png image/png"},
		{"shown and saved", plt + "plt.plot([1]); plt.show(); plt.savefig('a.png')", "a.png image/png"},
		{"shown, changed and saved", plt + "f, ax = plt.subplots(); plt.show(); ax.plot([2]); f.savefig('a.png')", "figure-1.png image/png, a.png image/png"},
		{"saved, changed and shown", plt + "plt.plot([1]); plt.savefig('a.png'); plt.title('x'); plt.show()", "a.png image/png, figure-1.png image/png"},
		{"saved as a drawing and shown", plt + "plt.plot([1]); plt.savefig('a.svg'); plt.savefig('b.pdf'); plt.show()", "a.svg image/svg+xml, b.pdf application/pdf, figure-1.png image/png"},
		{"saved as jpg", plt + "f = plt.figure(); plt.plot([1]); f.savefig('a.jpg'); f.savefig('b.jpeg')", "a.jpg image/jpeg, b.jpeg image/jpeg"},
		{"saved by path", plt + "import pathlib; plt.plot([1]); plt.savefig(pathlib.Path('a.png'))", "a.png image/png"},
		{"saved to memory", plt + "import io; b = io.BytesIO(b'xy'); b.read(1); plt.plot([1]); plt.savefig(b)\nassert b.getvalue()[1:5] == b'\\x89PNG', b.getvalue()[:9]\nassert b.tell() == len(b.getvalue())", "figure-1.png image/png"},
		{"saved to memory as text", plt + "import io; b = io.StringIO(); plt.plot([1]); plt.savefig(b, format='svg'); assert '<svg' in b.getvalue()", "figure-1.svg image/svg+xml"},
		{"saved to a file", plt + "plt.plot([1])\nwith open('a.bin', 'wb') as f: plt.savefig(f, format='png')\nassert open('a.bin', 'rb').read(4) == b'\\x89PNG'", "a.bin image/png"},
		{"saved without pyplot", "from matplotlib.figure import Figure\nf = Figure(); f.subplots().plot([1]); f.savefig('a.png')", "a.png image/png"},
		{"a figure's show", plt + "f, ax = plt.subplots(); ax.plot([1]); f.show(); f.show(); ax.plot([2]); f.show()", "figure-1.png image/png, figure-2.png image/png"},
		{"shown twice without waiting", plt + "plt.plot([1]); plt.show(block=False); plt.show(block=False); plt.plot([2]); plt.show()", "figure-1.png image/png, figure-2.png image/png"},
		{"saved by a canvas", plt + "f = plt.figure(); plt.plot([1]); f.canvas.print_figure('a.png')", "a.png image/png"},
		{"a backend that was chosen", "import matplotlib; matplotlib.use('Agg')\n" + plt + "plt.switch_backend('svg'); plt.plot([1]); plt.show()", "figure-1.png image/png"},
		{"pages", plt + "from matplotlib.backends.backend_pdf import PdfPages\nwith PdfPages('a.pdf') as p:\n  for i in range(3): plt.figure(); plt.plot([i]); p.savefig()", "a.pdf application/pdf"},
		{"an animation that is saved", plt + "from matplotlib.animation import FuncAnimation\nf, ax = plt.subplots(); FuncAnimation(f, lambda i: ax.plot([i]), frames=3).save('a.gif', writer='pillow')", ""},
		{"an animation by pauses", plt + "for i in range(3): plt.plot([i]); plt.pause(0.001)", "figure-1.png image/png"},
		{"raw pixels", plt + "import io; plt.plot([1]); plt.savefig(io.BytesIO(), format='rgba')", ""},
		{"Pillow", "from PIL import Image; Image.new('RGB', (3, 2), 'red').show('x'); Image.new('CMYK', (3, 2)).show()", "picture-1.png image/png, picture-2.png image/png"},
		{"pandas", plt + "import pandas as pd; pd.DataFrame({'a': [1, 2]}).plot(); plt.show()", "figure-1.png image/png"},
		{"workers", "import multiprocessing as m\ndef w(i):\n  import matplotlib.pyplot as p; p.plot([i]); p.savefig('%d.png' % i)\nif __name__ == '__main__':\n  for i in range(2): q = m.Process(target=w, args=(i,)); q.start(); q.join()", "0.png image/png, 1.png image/png"},
		{"a fork that ends", plt + "import os; plt.plot([1]); os.wait() if os.fork() else 0; plt.show() if not os.getpid() else 0", ""},
	}
	type forked struct {
		Code string `json:"code"`
		Dir  string `json:"dir"`
		Out  string `json:"directory"`
	}
	var list []forked
	for _, tt := range cases {
		list = append(list, forked{tt.code, t.TempDir(), t.TempDir()})
	}
	data, err := json.Marshal(list)
	if err != nil {
		t.Fatal(err)
	}
	p := newProgram(t, python)
	if err := os.WriteFile(filepath.Join(p.dir, "list.json"), data, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, stderr, _ := p.run(forks, "list.json"); stderr != "" {
		t.Fatal(stderr)
	}
	for i, tt := range cases {
		t.Run(tt.name, func(t *testing.T) {
			one := program{t: t}
			one.source.Dir = list[i].Out
			if got := names(one.items()); got != tt.want {
				t.Errorf("captured %s, want %s", got, tt.want)
			}
			if output := one.read(filepath.Join(list[i].Dir, "output")); len(output) > 0 || one.dropped() != "" {
				t.Errorf("it says %s, dropped %s, want no output, dropped empty", output, one.dropped())
			}
		})
	}
}

func TestAChildIsCaptured(t *testing.T) {
	items := newProgram(t, interpreter(t, "matplotlib")).shown("import subprocess, sys; subprocess.run([sys.executable, '-c', 'import matplotlib.pyplot as p; p.plot([1]); p.show()'], check=True)")
	if got, want := names(items), "figure-1.png image/png"; got != want {
		t.Errorf("captured %s, want %s", got, want)
	}
}
