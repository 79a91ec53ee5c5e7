package artifact

import "encoding/binary"

// A Size is what a picture's header says of it; 0 is not known.
type Size struct {
	Width, Height int
	DPI           float64
}

// SizeOf reads a PNG's or JPEG's header. It decodes no picture.
func SizeOf(mime string, data []byte) Size {
	switch mime {
	case PNG:
		return sizeOfPNG(data)
	case JPEG:
		return sizeOfJPEG(data)
	}
	return Size{}
}

const maxSide = 1<<31 - 1

func side(n uint32) int {
	if n > maxSide {
		return 0
	}
	return int(n)
}

// maxHeaders bounds how many parts before the picture itself are looked at.
const maxHeaders = 256

func sizeOfPNG(data []byte) (s Size) {
	// The size comes first, and once: decoders take no other.
	if !begins("\x89PNG\r\n\x1a\n\x00\x00\x00\x0dIHDR")(data) || len(data) < 8+25 {
		return s
	}
	s.Width, s.Height = side(binary.BigEndian.Uint32(data[16:])), side(binary.BigEndian.Uint32(data[20:]))
	data = data[8+25:]
	for range maxHeaders {
		if len(data) < 12 {
			return s
		}
		length := binary.BigEndian.Uint32(data)
		if uint64(length) > uint64(len(data)-12) {
			return s
		}
		kind, body := string(data[4:8]), data[8:8+length]
		switch {
		case kind == "pHYs" && length == 9: // the first counts
			if body[8] == 1 { // per metre
				s.DPI = round2(float64(binary.BigEndian.Uint32(body)) * 0.0254)
			}
			return s
		case kind == "IDAT":
			return s
		}
		data = data[12+length:]
	}
	return s
}

func sizeOfJPEG(data []byte) (s Size) {
	if !begins("\xff\xd8")(data) {
		return s
	}
	data = data[2:]
	for range maxHeaders {
		if len(data) == 0 || data[0] != 0xff { // some decoders get over what is between markers
			return s
		}
		for len(data) > 0 && data[0] == 0xff { // a marker's prefix, with any fill
			data = data[1:]
		}
		if len(data) < 3 {
			return s
		}
		marker, length := data[0], int(binary.BigEndian.Uint16(data[1:]))
		alone := marker < 0xc0 || marker >= 0xd0 && marker <= 0xd9 // no length follows it
		if alone || length < 2 || length > len(data)-1 {
			return s
		}
		body := data[3 : 1+length]
		switch {
		case marker == 0xe0 && len(body) >= 12 && string(body[:5]) == "JFIF\x00":
			density := float64(binary.BigEndian.Uint16(body[8:]))
			switch body[7] {
			case 1:
				s.DPI = density
			case 2: // per centimetre
				s.DPI = round2(density * 2.54)
			}
		case marker >= 0xc0 && marker <= 0xcf && marker != 0xc4 && marker != 0xc8 && marker != 0xcc && len(body) >= 5:
			s.Height, s.Width = int(binary.BigEndian.Uint16(body[1:])), int(binary.BigEndian.Uint16(body[3:]))
			return s
		case marker == 0xda:
			return s
		}
		data = data[1+length:]
	}
	return s
}

// round2 takes back what a density lost when it was written as a whole number: 100 dots
// per inch are written as 3937 per metre.
func round2(dpi float64) float64 {
	if whole := float64(int64(dpi + 0.5)); dpi > whole-0.02 && dpi < whole+0.02 {
		return whole
	}
	return float64(int64(dpi*100+0.5)) / 100
}
