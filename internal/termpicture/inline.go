package termpicture

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"image"
	"image/png"
)

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
