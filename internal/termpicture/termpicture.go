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
