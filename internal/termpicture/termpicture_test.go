package termpicture

import (
	"bytes"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"image"
	"image/color"
	"image/jpeg"
	"image/png"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// sample is a picture of two colours with something of every other.
func sample(w, h int, many bool) *image.RGBA {
	img := image.NewRGBA(image.Rect(0, 0, w, h))
	for y := range h {
		for x := range w {
			c := color.RGBA{255, 0, 0, 255}
			if x > y {
				c = color.RGBA{0, 0, 255, 255}
			}
			if many {
				c.G = uint8(x*x*7 + y*y*x)
				c.R = uint8(y*y*5 + x*y)
			}
			img.Set(x, y, c)
		}
	}
	return img
}

func pngOf(t testing.TB, img image.Image) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := png.Encode(&b, img); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func TestDetect(t *testing.T) {
	for _, c := range []struct {
		env  string
		want Protocol
	}{
		{"", None},
		{"TERM=xterm-256color", None},
		{"TERM=dumb KITTY_WINDOW_ID=1", None},
		{"TERM=xterm-kitty", Kitty},
		{"TERM=xterm-256color KITTY_WINDOW_ID=1", Kitty},
		{"TERM=xterm-ghostty", Kitty},
		{"TERM=xterm-kitty TMUX=/tmp/tmux", None},
		{"TERM=screen.xterm-256color TERM_PROGRAM=iTerm.app", None},
		{"TERM=xterm-256color TERM_PROGRAM=iTerm.app", ITerm},
		{"TERM=xterm-256color LC_TERMINAL=iTerm2", ITerm},
		{"TERM=xterm-256color TERM_PROGRAM=WezTerm", ITerm},
		{"TERM=foot", Sixel},
		{"TERM=mlterm", Sixel},
		{"TERM=foot LLMSANDBOX_PICTURES=none", None},
		{"TERM=foot LLMSANDBOX_PICTURES=nonsense", None},
		{"TERM=dumb LLMSANDBOX_PICTURES=kitty", Kitty},
	} {
		env := map[string]string{}
		for _, kv := range strings.Fields(c.env) {
			name, value, _ := strings.Cut(kv, "=")
			env[name] = value
		}
		if got := Detect(func(name string) string { return env[name] }); got != c.want {
			t.Errorf("%q: %q, want %q", c.env, got, c.want)
		}
	}
}

func show(t *testing.T, p Protocol, data []byte) string {
	t.Helper()
	var out bytes.Buffer
	if err := Show(&out, p, data); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

// same checks that a picture is the one that was shown.
func same(t *testing.T, got, want image.Image) {
	t.Helper()
	if got.Bounds().Size() != want.Bounds().Size() {
		t.Fatalf("%v, want %v", got.Bounds(), want.Bounds())
	}
	for y := range want.Bounds().Dy() {
		for x := range want.Bounds().Dx() {
			r, g, b, _ := got.At(x, y).RGBA()
			r2, g2, b2, _ := want.At(x, y).RGBA()
			if apart(r, r2)+apart(g, g2)+apart(b, b2) > 0x300 {
				t.Fatalf("pixel %d,%d is %v, want %v", x, y, got.At(x, y), want.At(x, y))
			}
		}
	}
}

func apart(a, b uint32) uint32 { return max(a, b) - min(a, b) }

var kittySequence = regexp.MustCompile(`\x1b_G([^;\x1b]*);([A-Za-z0-9+/=]*)\x1b\\`)

func TestKitty(t *testing.T) {
	img := sample(200, 150, true)
	out := show(t, Kitty, pngOf(t, img))
	var data string
	parts := kittySequence.FindAllStringSubmatch(out, -1)
	for i, m := range parts {
		if len(m[2]) > kittyChunk || strings.Contains(m[1], "m=1") != (i < len(parts)-1) || strings.Contains(m[1], "a=T,f=100") != (i == 0) {
			t.Errorf("part %d of %d: %q with %d bytes, want len(m[2]) <= %d, strings.Contains(m[1], \"m=1\") = %v, strings.Contains(m[1], \"a=T,f=100\") = %v", i, len(parts), m[1], len(m[2]), kittyChunk, i < len(parts)-1, i == 0)
		}
		data += m[2]
	}
	if rest := kittySequence.ReplaceAllString(out, ""); rest != "\n" || len(parts) < 2 {
		t.Errorf("%d parts, and %q, want rest = \"\\n\", len(parts) >= 2", len(parts), rest)
	}
	raw, err := base64.StdEncoding.DecodeString(data)
	if err != nil {
		t.Fatal(err)
	}
	got, err := png.Decode(bytes.NewReader(raw))
	if err != nil {
		t.Fatal(err)
	}
	same(t, got, img)
}

func TestITerm(t *testing.T) {
	img := sample(20, 10, false)
	m := regexp.MustCompile(`^\x1b\]1337;File=inline=1;size=\d+;preserveAspectRatio=1:([A-Za-z0-9+/=]*)\a\n$`).FindStringSubmatch(show(t, ITerm, pngOf(t, img)))
	if m == nil {
		t.Fatalf("not of the form: m = %v, want not nil", m)
	}
	raw, err := base64.StdEncoding.DecodeString(m[1])
	if err != nil {
		t.Fatal(err)
	}
	got, err := png.Decode(bytes.NewReader(raw))
	if err != nil {
		t.Fatal(err)
	}
	same(t, got, img)
}

// unsixel draws what sixels say.
func unsixel(t *testing.T, s string) *image.RGBA {
	t.Helper()
	m := regexp.MustCompile(`(?s)^\x1bP0;1;0q"1;1;(\d+);(\d+)(.*)\x1b\\\n$`).FindStringSubmatch(s)
	if m == nil {
		t.Fatalf("not of the form: %.60q, want m not nil", s)
	}
	w, _ := strconv.Atoi(m[1])
	h, _ := strconv.Atoi(m[2])
	img := image.NewRGBA(image.Rect(0, 0, w, h))
	colors := map[int]color.RGBA{}
	x, top, c := 0, 0, 0
	for body := m[3]; body != ""; {
		switch body[0] {
		case '#':
			var n, r, g, b int
			if k, _ := fmt.Sscanf(body, "#%d;2;%d;%d;%d", &n, &r, &g, &b); k == 4 {
				colors[n] = color.RGBA{uint8((r*255 + 50) / 100), uint8((g*255 + 50) / 100), uint8((b*255 + 50) / 100), 255}
				body = body[len(fmt.Sprintf("#%d;2;%d;%d;%d", n, r, g, b)):]
			} else {
				c = n
				body = body[len(fmt.Sprintf("#%d", n)):]
			}
			continue
		case '$':
			x = 0
		case '-':
			x, top = 0, top+bandHeight
		default:
			n := 1
			if body[0] == '!' {
				fmt.Sscanf(body, "!%d", &n)
				body = body[len(fmt.Sprintf("!%d", n)):]
			}
			for range n {
				for bit := range bandHeight {
					if (body[0]-'?')>>bit&1 == 1 {
						img.Set(x, top+bit, colors[c])
					}
				}
				x++
			}
		}
		body = body[1:]
	}
	return img
}

func TestSixel(t *testing.T) {
	img := sample(61, 47, false)
	same(t, unsixel(t, show(t, Sixel, pngOf(t, img))), img)
	large := unsixel(t, show(t, Sixel, pngOf(t, sample(2500, 100, true))))
	if size := large.Bounds().Size(); size.X > sixelSide || size.X < sixelSide/2 || size.Y != 34 {
		t.Errorf("%v, want X <= %v, X >= %v, Y = 34", size, sixelSide, sixelSide/2)
	}
	clear := unsixel(t, show(t, Sixel, pngOf(t, image.NewNRGBA(image.Rect(0, 0, 8, 8)))))
	if got := clear.RGBAAt(3, 3); got != (color.RGBA{255, 255, 255, 255}) {
		t.Errorf("what is transparent is shown as %v, want %v", got, color.RGBA{255, 255, 255, 255})
	}
}

// bomb is a PNG whose header says that it is huge.
func bomb(w, h uint32) []byte {
	header := []byte("IHDR")
	header = binary.BigEndian.AppendUint32(header, w)
	header = binary.BigEndian.AppendUint32(header, h)
	header = append(header, 8, 6, 0, 0, 0)
	data := append([]byte("\x89PNG\r\n\x1a\n\x00\x00\x00\x0d"), header...)
	return binary.BigEndian.AppendUint32(data, crc32.ChecksumIEEE(header))
}

func TestShowRefuses(t *testing.T) {
	var photo bytes.Buffer
	if err := jpeg.Encode(&photo, sample(16, 16, true), nil); err != nil {
		t.Fatal(err)
	}
	if out := show(t, Kitty, photo.Bytes()); !strings.Contains(out, "a=T") {
		t.Errorf("a JPEG is %q, want it to contain \"a=T\"", out)
	}
	for name, data := range map[string][]byte{
		"a bomb": bomb(1<<20, 1<<20), "wide": bomb(1<<30, 1), "text": []byte("hello"), "cut": pngOf(t, sample(50, 50, true))[:100],
		"nothing": nil, "cut jpeg": photo.Bytes()[:50], "large": make([]byte, maxBytes+1), "html": []byte("<script>"),
	} {
		var out bytes.Buffer
		if err := Show(&out, Kitty, data); !errors.Is(err, ErrNotShown) || out.Len() > 0 {
			t.Errorf("%s: %v, %d bytes, want ErrNotShown, Len <= 0", name, err, out.Len())
		}
	}
	if err := Show(new(bytes.Buffer), None, pngOf(t, sample(2, 2, false))); !errors.Is(err, ErrNotShown) {
		t.Errorf("without a protocol: %v, want ErrNotShown", err)
	}
}
