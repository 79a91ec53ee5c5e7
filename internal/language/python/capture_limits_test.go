package python

import (
	"bytes"
	"image"
	"image/color"
	"image/png"
	"strings"
	"testing"
)

const plt = "import matplotlib.pyplot as plt\n"

func TestUnshownFigures(t *testing.T) {
	python := interpreter(t, "matplotlib")
	for _, tt := range []struct{ name, code, want string }{
		{"never shown", plt + "plt.plot([1]); plt.figure(); plt.plot([2])", "figure-1.png image/png, figure-2.png image/png"},
		{"shown and saved are no longer", plt + "plt.plot([1]); plt.savefig('a.png'); plt.figure(); plt.plot([2]); plt.show()", "a.png image/png, figure-1.png image/png"},
		{"closed", plt + "plt.plot([1]); plt.close()", ""},
		{"ended by an exit code", plt + "plt.plot([1]); raise SystemExit(0)", "figure-1.png image/png"},
		{"a worker's copies are the parent's", plt + "import os, sys\nplt.plot([1])\nif os.fork() == 0: sys.exit()\nos.wait()", "figure-1.png image/png"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			p := newProgram(t, python)
			p.source.Unshown = true
			if got := names(p.shown(tt.code)); got != tt.want {
				t.Errorf("captured %s, want %s", got, tt.want)
			}
		})
	}
	t.Run("ended by an exception", func(t *testing.T) {
		p := newProgram(t, python)
		p.source.Unshown = true
		_, stderr, items := p.run(plt + "plt.plot([1]); 1/0")
		if got := names(items); got != "figure-1.png image/png" || !strings.HasSuffix(stderr, "ZeroDivisionError: division by zero\n") {
			t.Errorf("captured %s, stderr %s, want got = \"figure-1.png image/png\", stderr ending in \"ZeroDivisionError: division by zero\\n\"", got, stderr)
		}
	})
}

func TestTheCaptureStopsAtItsLimits(t *testing.T) {
	python := interpreter(t, "matplotlib")
	const many = plt + "for i in range(5): plt.plot([i]); plt.savefig('%d.png' % i)"
	p := newProgram(t, python)
	p.source.MaxCount = 2
	if stdout, stderr, items := p.run(many); names(items) != "0.png image/png, 1.png image/png" || stdout+stderr != "" || !strings.Contains(p.dropped(), "4.png was not captured: there are 2 already") {
		t.Errorf("captured %s, stderr %q, dropped %s, want names(items) = \"0.png image/png, 1.png image/png\", stdout+stderr empty, dropped containing \"4.png was not captured: there are 2 already\"", names(items), stderr, p.dropped())
	}
	p = newProgram(t, python)
	p.source.MaxBytes = 1000
	if stdout, stderr, items := p.run(many); len(items) > 0 || stdout+stderr != "" || !strings.Contains(p.dropped(), "0.png was not captured: it would exceed 1000 bytes") {
		t.Errorf("captured %s, stderr %q, dropped %s, want no items, stdout+stderr empty, dropped containing \"0.png was not captured: it would exceed 1000 bytes\"", names(items), stderr, p.dropped())
	}
}

// TestManyProcessesCaptureAtOnce has them write side by side: nothing is lost or mixed up.
func TestManyProcessesCaptureAtOnce(t *testing.T) {
	p := newProgram(t, interpreter(t, "PIL"))
	items := p.shown(`
import os, sys
from PIL import Image
children = []
for i in range(8):
    child = os.fork()
    if child == 0:
        for k in range(10):
            Image.new("RGB", (i + 1, k + 1)).show(str(i))
        os._exit(0)
    children.append(child)
for child in children:
    os.waitpid(child, 0)
`)
	seen := map[image.Point]bool{}
	for _, it := range items {
		config, err := png.DecodeConfig(bytes.NewReader(it.data))
		if err != nil || config.Width != it.Width || config.Height != it.Height {
			t.Errorf("%+v: %v, want no error, Width = %v, Height = %v", it.description, err, it.Width, it.Height)
		}
		seen[image.Pt(config.Width, config.Height)] = true
	}
	if len(items) != 80 || len(seen) != 80 {
		t.Errorf("captured %d, %d of them different, want len(items) = 80, len(seen) = 80", len(items), len(seen))
	}
}

// TestNothingOfTheProgramsIsChanged compares a program's view of what it plots with and
// without the capture.
func TestNothingOfTheProgramsIsChanged(t *testing.T) {
	const code = plt + `
import io, pickle, sys, warnings
fig, ax = plt.subplots()
ax.plot([1, 2], label="a")
warnings.warn("once")
out = io.BytesIO()
result = fig.savefig(out, dpi=50)
print(result, out.tell(), len(out.getvalue()), fig.dpi, fig.get_size_inches(), fig.get_facecolor())
print(plt.show(block=False), plt.get_fignums(), ax.lines[0].get_xydata().tolist(), plt.get_backend().lower())
for _ in range(2):
    warnings.warn("twice at one place")
print(sorted(vars(pickle.loads(pickle.dumps(fig)))))
try:
    fig.savefig("/nonexistent/x.png")
except OSError as e:
    print(type(e).__name__, e)
try:
    fig.savefig("x.unknown")
except ValueError as e:
    print(str(e)[:20])
`
	// Without a window, show() is said to do nothing: only that may differ.
	p := newProgram(t, interpreter(t, "matplotlib"))
	p.environ = append(p.environ, "MPLBACKEND=agg")
	with, withErr, items := p.run(code)
	without, withoutErr := p.bare()
	if with != without || strings.Count(withErr, "UserWarning") != strings.Count(withoutErr, "UserWarning") {
		t.Errorf("with the capture\n%s%s\nwithout\n%s%s", with, withErr, without, withoutErr)
	}
	if got, want := names(items), "figure-1.png image/png"; got != want || p.dropped() != "" {
		t.Errorf("captured %s, want %s, dropped %s", got, want, p.dropped())
	}
}

// TestPicturesShowWhatWasPlotted looks for colours where they must be.
func TestPicturesShowWhatWasPlotted(t *testing.T) {
	p := newProgram(t, interpreter(t, "matplotlib"))
	items := p.shown(plt + `
fig = plt.figure(figsize=(4, 3), dpi=100)
ax = fig.add_axes([0, 0, 1, 1]); ax.axis("off"); ax.set(xlim=(0, 4), ylim=(0, 3))
ax.bar([1], [2], width=1, color="#ff0000"); ax.plot([2, 4], [1, 1], color="#0000ff", linewidth=10)
plt.show()
plt.figure(figsize=(400, 200)); plt.plot([1], [1]); plt.show()
`)
	if len(items) != 2 {
		t.Fatalf("captured %s, want len(items) = 2", names(items))
	}
	picture, err := png.Decode(bytes.NewReader(items[0].data))
	if err != nil {
		t.Fatal(err)
	}
	size := picture.Bounds().Size()
	if size.X != items[0].Width || size.Y != items[0].Height || size.X < 390 || size.X > 440 || items[0].DPI != 100 {
		t.Errorf("%v, described as %+v, want size.X = items[0].Width, size.Y = items[0].Height, X >= 390, X <= 440, DPI = 100", size, items[0].description)
	}
	pad := image.Pt((size.X-400)/2, (size.Y-300)/2) // around what is drawn
	for at, want := range map[image.Point]color.RGBA{
		{100, 200}: {255, 0, 0, 255}, {100, 120}: {255, 0, 0, 255}, {100, 50}: {255, 255, 255, 255},
		{300, 200}: {0, 0, 255, 255}, {300, 150}: {255, 255, 255, 255}, {20, 290}: {255, 255, 255, 255},
	} {
		if got := color.RGBAModel.Convert(picture.At(at.X+pad.X, at.Y+pad.Y)); got != want {
			t.Errorf("at %v the colour is %v, want %v", at, got, want)
		}
	}
	if items[1].Width*items[1].Height > 25_000_000 {
		t.Errorf("a huge figure became %d×%d, want Height <= 25_000_000", items[1].Width, items[1].Height)
	}
}
