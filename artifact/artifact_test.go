package artifact

import (
	"bytes"
	"encoding/binary"
	"image"
	"image/jpeg"
	"image/png"
	"io"
	"slices"
	"strings"
	"testing"
)

func pngOf(t testing.TB, w, h int) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := png.Encode(&b, image.NewGray(image.Rect(0, 0, w, h))); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// withDensity puts a pHYs chunk behind a PNG's header.
func withDensity(data []byte, perMetre uint32) []byte {
	chunk := binary.BigEndian.AppendUint32(nil, 9)
	chunk = append(chunk, "pHYs"...)
	chunk = binary.BigEndian.AppendUint32(chunk, perMetre)
	chunk = binary.BigEndian.AppendUint32(chunk, perMetre)
	chunk = append(chunk, 1, 0, 0, 0, 0)
	return slices.Insert(slices.Clone(data), 8+25, chunk...)
}

// header is a PNG's chunk of its size.
func header(w, h uint32) string {
	chunk := binary.BigEndian.AppendUint32([]byte("\x00\x00\x00\x0dIHDR"), w)
	return string(binary.BigEndian.AppendUint32(chunk, h)) + "\x08\x00\x00\x00\x00\x00\x00\x00\x00"
}

// frame is a JPEG's segment of its size, without its first byte.
const frame = "\xc0\x00\x0b\x08\x7f\xff\x7f\xff\x01\x01\x11\x00"

func jpegOf(t testing.TB, w, h int) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := jpeg.Encode(&b, image.NewGray(image.Rect(0, 0, w, h)), nil); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// withJFIF puts a JFIF segment behind a JPEG's start.
func withJFIF(data []byte, unit byte, density uint16) []byte {
	segment := []byte("\xff\xe0\x00\x10JFIF\x00\x01\x01")
	segment = append(segment, unit)
	segment = binary.BigEndian.AppendUint16(segment, density)
	segment = binary.BigEndian.AppendUint16(segment, density)
	return slices.Insert(slices.Clone(data), 2, append(segment, 0, 0)...)
}

func TestSizeOf(t *testing.T) {
	for _, c := range []struct {
		name, mime string
		data       []byte
		want       Size
	}{
		{"png", PNG, pngOf(t, 640, 480), Size{640, 480, 0}},
		{"png of 100 dots per inch", PNG, withDensity(pngOf(t, 64, 48), 3937), Size{64, 48, 100}},
		{"png of 72.5", PNG, withDensity(pngOf(t, 64, 48), 2854), Size{64, 48, 72.49}},
		{"png with a second header", PNG, slices.Insert(pngOf(t, 3, 2), 8+25, []byte(header(983058, 1229209940))...), Size{3, 2, 0}},
		{"png with something before its header", PNG, slices.Insert(pngOf(t, 3, 2), 8, []byte("\x00\x00\x00\x00teXt\x00\x00\x00\x00")...), Size{}},
		{"png with something of a header's name first", PNG, slices.Insert(pngOf(t, 3, 2), 8, []byte("\x00\x00\x00\x00IHDR\x00\x00\x00\x00")...), Size{}},
		{"png with a second density", PNG, withDensity(withDensity(pngOf(t, 64, 48), 2854), 3937), Size{64, 48, 100}},
		{"cut png", PNG, pngOf(t, 64, 48)[:30], Size{}},
		{"jpeg", JPEG, jpegOf(t, 33, 22), Size{33, 22, 0}},
		{"jpeg of 150 dots per inch", JPEG, withJFIF(jpegOf(t, 33, 22), 1, 150), Size{33, 22, 150}},
		{"jpeg of 59 dots per centimetre", JPEG, withJFIF(jpegOf(t, 33, 22), 2, 59), Size{33, 22, 149.86}},
		{"jpeg with fill bytes", JPEG, slices.Insert(jpegOf(t, 33, 22), 2, 0xff, 0xff), Size{33, 22, 0}},
		{"jpeg with a second frame", JPEG, slices.Insert(jpegOf(t, 33, 22), len(jpegOf(t, 33, 22))-2, []byte("\xff"+frame)...), Size{33, 22, 0}},
		{"jpeg with a frame that no marker begins", JPEG, slices.Insert(jpegOf(t, 33, 22), 2, []byte(frame)...), Size{}},
		{"jpeg with a frame behind a marker without length", JPEG, slices.Insert(jpegOf(t, 33, 22), 2, []byte("\xff\xd0\x00\x02\xff"+frame)...), Size{}},
		{"jpeg with a frame behind its end", JPEG, []byte("\xff\xd8\xff\xd9\x00\x02\xff" + frame), Size{}},
		{"what is no png", PNG, []byte("hello"), Size{}},
		{"svg", SVG, []byte(`<svg width="10"/>`), Size{}},
	} {
		if got := SizeOf(c.mime, c.data); got != c.want {
			t.Errorf("%s: %+v, want %+v", c.name, got, c.want)
		}
	}
}

func TestTypeOf(t *testing.T) {
	picture, photo := string(pngOf(t, 1, 1)), string(jpegOf(t, 1, 1))
	for _, c := range []struct{ name, data, want string }{
		{"a.png", picture, PNG},
		{"a.PNG", picture, PNG},
		{"a.jpeg", photo, JPEG},
		{"a.png", photo, Binary},
		{"a.png", "<script>", Binary},
		{"a", picture, PNG},
		{"a.dat", photo, JPEG},
		{"a.svg", "<?xml version='1.0'?>\n<!-- x --><svg></svg>", SVG},
		{"a.svg", "<html>", Binary},
		{"a.pdf", "%PDF-1.4\n", PDF},
		{"a.html", "<b>é</b>", HTML},
		{"a.html", "\xff\xfe", Binary},
		{"a.json", `{"a": [1]}`, JSON},
		{"a.json", `{"a": `, Binary},
		{"a.csv", "a,b\n1,2\n", CSV},
		{"a.csv", "a\x00b", Binary},
		{"a.txt", "", Text},
		{"a.md", "# x", Markdown},
		{"a.tex", `\frac{1}{2}`, LaTeX},
		{"a.exe", "MZ", Binary},
		{"", "", Binary},
	} {
		if got := TypeOf(c.name, []byte(c.data)); got != c.want {
			t.Errorf("%q with %.20q: %s, want %s", c.name, c.data, got, c.want)
		}
	}
	if got := Verify("text/x-unknown", []byte("x")); got != Binary {
		t.Errorf("a type that is none: %s, want Binary", got)
	}
	for _, mime := range Types() {
		if ext := Extension(mime); !strings.HasPrefix(ext, ".") || mime != Binary && ext == ".bin" {
			t.Errorf("%s ends in %q, want ext beginning with \".\", mime = Binary or ext != \".bin\"", mime, ext)
		}
	}
}

func FuzzSizeOf(f *testing.F) {
	f.Add([]byte{})
	f.Add(withDensity(pngOf(f, 3, 2), 3937))
	f.Add(withJFIF(jpegOf(f, 3, 2), 1, 72))
	f.Fuzz(func(t *testing.T, data []byte) {
		for mime, decode := range map[string]func(io.Reader) (image.Config, error){PNG: png.DecodeConfig, JPEG: jpeg.DecodeConfig} {
			s := SizeOf(mime, data)
			if s.Width < 0 || s.Height < 0 || !(s.DPI >= 0 && s.DPI < 1e9) {
				t.Fatalf("%+v, want Width >= 0, Height >= 0, (s.DPI >= 0 && s.DPI < 1e9) = true", s)
			}
			// What Go's own decoders read, the header says likewise, where it says something.
			if c, err := decode(bytes.NewReader(data)); err == nil && s.Width+s.Height > 0 && (s.Width != c.Width || s.Height != c.Height) {
				t.Fatalf("%s: %+v, want %d by %d", mime, s, c.Width, c.Height)
			}
		}
	})
}
