// Package termpicture shows pictures in terminals that can: those that know Kitty's or
// iTerm2's way, or sixels. Pictures come from sandboxes: they are decoded within bounds
// and written anew, so that no byte of theirs reaches the terminal.
package termpicture

import (
	"bytes"
	"encoding/base64"
	"errors"
	"fmt"
	"image"
	"image/color"
	"image/color/palette"
	"image/draw"
	"image/jpeg"
	"image/png"
	"io"
	"strings"
)

// A Protocol is a terminal's way to get pictures.
type Protocol string

// The protocols.
const (
	None  Protocol = ""
	Kitty Protocol = "kitty"
	ITerm Protocol = "iterm2"
	Sixel Protocol = "sixel"
)

// Variable overrides what is detected: kitty, iterm2, sixel or none.
const Variable = "LLMSANDBOX_PICTURES"

// Detect finds by the environment how the terminal takes pictures. It asks the terminal
// nothing: an answer could arrive when the program reads its input. A multiplexer passes
// pictures on only when it is configured to, so inside one there are none.
func Detect(env func(string) string) Protocol {
	switch p := Protocol(strings.ToLower(env(Variable))); p {
	case Kitty, ITerm, Sixel:
		return p
	case "":
	default:
		return None
	}
	term, program := env("TERM"), env("TERM_PROGRAM")
	switch {
	case term == "" || term == "dumb" || env("TMUX") != "" || env("STY") != "" || strings.HasPrefix(term, "screen") || strings.HasPrefix(term, "tmux"):
		return None
	case env("KITTY_WINDOW_ID") != "" || term == "xterm-kitty" || term == "xterm-ghostty" || program == "ghostty":
		return Kitty
	case program == "iTerm.app" || program == "WezTerm" || program == "mintty" || env("LC_TERMINAL") == "iTerm2":
		return ITerm
	case strings.HasPrefix(term, "foot") || strings.HasPrefix(term, "mlterm") || strings.HasPrefix(term, "yaft") || strings.Contains(term, "sixel"):
		return Sixel
	}
	return None
}

// Bounds of a picture that is shown.
const (
	maxBytes  = 32 << 20
	maxPixels = 32 << 20
)

// ErrNotShown means that a picture was not shown: it has no supported format, or is too large.
var ErrNotShown = errors.New("the picture cannot be shown in a terminal")

// Show writes a PNG or JPEG for the terminal, which moves to the line below it.
func Show(w io.Writer, p Protocol, data []byte) error {
	img, err := decode(data)
	if err != nil {
		return err
	}
	var out bytes.Buffer
	switch p {
	case Kitty:
		err = kitty(&out, img)
	case ITerm:
		err = iterm(&out, img)
	case Sixel:
		sixel(&out, img)
	default:
		return fmt.Errorf("%w: the terminal takes none", ErrNotShown)
	}
	if err != nil {
		return err
	}
	out.WriteByte('\n')
	_, err = w.Write(out.Bytes())
	return err
}

// decode decodes a picture whose header says that it is of a size to decode.
func decode(data []byte) (image.Image, error) {
	if len(data) > maxBytes {
		return nil, fmt.Errorf("%w: it has more than %d bytes", ErrNotShown, maxBytes)
	}
	config, full := png.DecodeConfig, png.Decode
	if bytes.HasPrefix(data, []byte("\xff\xd8")) {
		config, full = jpeg.DecodeConfig, jpeg.Decode
	}
	size, err := config(bytes.NewReader(data))
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrNotShown, err)
	}
	if size.Width <= 0 || size.Height <= 0 || size.Width > maxPixels/size.Height {
		return nil, fmt.Errorf("%w: it is %d by %d", ErrNotShown, size.Width, size.Height)
	}
	img, err := full(bytes.NewReader(data))
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrNotShown, err)
	}
	return img, nil
}

// encoded is a picture as PNG in base64.
func encoded(img image.Image) ([]byte, error) {
	var b bytes.Buffer
	encoder := png.Encoder{CompressionLevel: png.BestSpeed}
	if err := encoder.Encode(&b, img); err != nil {
		return nil, fmt.Errorf("encode the picture for the terminal: %w", err)
	}
	return base64.StdEncoding.AppendEncode(nil, b.Bytes()), nil
}

// kittyChunk is what Kitty's protocol allows in one sequence.
const kittyChunk = 4096

// kitty shows a picture at the cursor: PNG, transmitted and displayed at once, with no
// answer from the terminal.
func kitty(out *bytes.Buffer, img image.Image) error {
	data, err := encoded(img)
	if err != nil {
		return err
	}
	control := "a=T,f=100,q=2,"
	for {
		n := min(len(data), kittyChunk)
		more := 0
		if n < len(data) {
			more = 1
		}
		fmt.Fprintf(out, "\x1b_G%sm=%d;%s\x1b\\", control, more, data[:n])
		if data, control = data[n:], "q=2,"; more == 0 {
			return nil
		}
	}
}

// iterm shows a picture at the cursor in iTerm2's way.
func iterm(out *bytes.Buffer, img image.Image) error {
	data, err := encoded(img)
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "\x1b]1337;File=inline=1;size=%d;preserveAspectRatio=1:%s\a", base64.StdEncoding.DecodedLen(len(data)), data)
	return nil
}

const (
	// sixelSide is the longest side that is shown; what is larger is thinned out.
	sixelSide   = 1200
	sixelColors = 256
	bandHeight  = 6
)

// sixel writes a picture as bands of six lines, colour by colour.
func sixel(out *bytes.Buffer, img image.Image) {
	p := paletted(thinned(img))
	size := p.Bounds().Size()
	fmt.Fprintf(out, "\x1bP0;1;0q\"1;1;%d;%d", size.X, size.Y)
	for i, c := range p.Palette {
		r, g, b, _ := c.RGBA()
		fmt.Fprintf(out, "#%d;2;%d;%d;%d", i, percent(r), percent(g), percent(b))
	}
	bits := make([]byte, size.X)
	for top := 0; top < size.Y; top += bandHeight {
		for _, c := range bandColors(p, top) {
			clear(bits)
			for y := top; y < min(top+bandHeight, size.Y); y++ {
				row := p.Pix[y*p.Stride : y*p.Stride+size.X]
				for x, at := range row {
					if at == c {
						bits[x] |= 1 << (y - top)
					}
				}
			}
			fmt.Fprintf(out, "#%d", c)
			writeRuns(out, bits)
			out.WriteByte('$')
		}
		out.WriteByte('-')
	}
	out.WriteString("\x1b\\")
}

// percent is a 16-bit intensity as sixels have it.
func percent(v uint32) uint32 { return (v*100 + 0x7fff) / 0xffff }

// bandColors are the colours that a band has, ascending.
func bandColors(p *image.Paletted, top int) (colors []byte) {
	var has [sixelColors]bool
	size := p.Bounds().Size()
	for y := top; y < min(top+bandHeight, size.Y); y++ {
		for _, c := range p.Pix[y*p.Stride : y*p.Stride+size.X] {
			has[c] = true
		}
	}
	for c, is := range has {
		if is {
			colors = append(colors, byte(c))
		}
	}
	return colors
}

// writeRuns writes one colour's bits of a band, equal neighbours together.
func writeRuns(out *bytes.Buffer, bits []byte) {
	for x := 0; x < len(bits); {
		n := 1
		for x+n < len(bits) && bits[x+n] == bits[x] {
			n++
		}
		if n > 3 {
			fmt.Fprintf(out, "!%d%c", n, '?'+bits[x])
		} else {
			for range n {
				out.WriteByte('?' + bits[x])
			}
		}
		x += n
	}
}

// thinned is a picture on white, of which every n-th pixel is left when it is too large.
func thinned(img image.Image) *image.RGBA {
	b := img.Bounds()
	step := max(1, (max(b.Dx(), b.Dy())+sixelSide-1)/sixelSide)
	size := image.Rect(0, 0, (b.Dx()+step-1)/step, (b.Dy()+step-1)/step)
	out := image.NewRGBA(size)
	draw.Draw(out, size, image.White, image.Point{}, draw.Src)
	if step == 1 {
		draw.Draw(out, size, img, b.Min, draw.Over)
		return out
	}
	small := image.NewNRGBA(size)
	for y := range size.Dy() {
		for x := range size.Dx() {
			small.Set(x, y, img.At(b.Min.X+x*step, b.Min.Y+y*step))
		}
	}
	draw.Draw(out, size, small, image.Point{}, draw.Over)
	return out
}

// paletted has a picture's own colours, when they are few enough, or else those next to
// them of a fixed palette.
func paletted(img *image.RGBA) *image.Paletted {
	var own color.Palette
	index := map[color.RGBA]byte{}
	for i := 0; i < len(img.Pix); i += 4 {
		c := color.RGBA{img.Pix[i], img.Pix[i+1], img.Pix[i+2], 255}
		if _, known := index[c]; known {
			continue
		}
		if len(own) == sixelColors {
			out := image.NewPaletted(img.Bounds(), palette.Plan9)
			draw.FloydSteinberg.Draw(out, out.Bounds(), img, image.Point{})
			return out
		}
		index[c] = byte(len(own))
		own = append(own, c)
	}
	out := image.NewPaletted(img.Bounds(), own)
	for i := range out.Pix {
		out.Pix[i] = index[color.RGBA{img.Pix[4*i], img.Pix[4*i+1], img.Pix[4*i+2], 255}]
	}
	return out
}
