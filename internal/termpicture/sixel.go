package termpicture

import (
	"bytes"
	"fmt"
	"image"
	"image/color"
	"image/color/palette"
	"image/draw"
)

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
