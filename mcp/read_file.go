package mcp

import (
	"bytes"
	"context"
	"encoding/base64"
	"errors"
	"unicode/utf8"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/llmsandbox/llmsandbox/artifact"
)

type readArgs struct {
	SessionID string `json:"session_id" jsonschema:"of create_session"`
	Path      string `json:"path" jsonschema:"relative to the working folder or absolute"`
	Offset    int64  `json:"offset,omitempty" jsonschema:"bytes to leave out at the beginning"`
	Limit     int64  `json:"limit,omitempty" jsonschema:"bytes to read at most"`
}

// fileContent is what was read. Content is empty when a picture is in the result's content.
type fileContent struct {
	Path     string `json:"path"`
	MIME     string `json:"mime"`
	Size     int64  `json:"size" jsonschema:"bytes of the whole file"`
	Offset   int64  `json:"offset"`
	Bytes    int64  `json:"bytes" jsonschema:"bytes that were read"`
	Encoding string `json:"encoding" jsonschema:"of content: text, base64, or image where the picture is beside it"`
	Content  string `json:"content"`
	// Next is where to go on.
	Next int64 `json:"next_offset,omitempty" jsonschema:"offset at which to go on reading; absent at the end"`
}

// errEnough ends a copy when there is enough of it.
var errEnough = errors.New("enough")

// A window keeps the bytes from an offset on, up to a number of them.
type window struct {
	skip  int64
	most  int64
	bytes []byte
}

func (w *window) Write(p []byte) (int, error) {
	n := len(p)
	out := min(w.skip, int64(n))
	w.skip -= out
	p = p[out:]
	room := w.most - int64(len(w.bytes))
	if int64(len(p)) > room {
		w.bytes = append(w.bytes, p[:room]...)
		return n, errEnough
	}
	w.bytes = append(w.bytes, p...)
	return n, nil
}

func (s *Server) readFile(ctx context.Context, c *call, in readArgs) (*sdk.CallToolResult, fileContent, error) {
	one, done, err := s.sessions.use(c.owner, in.SessionID)
	if err != nil {
		return nil, fileContent{}, err
	}
	defer done()
	sb := one.Value.sandbox
	info, err := sb.Stat(ctx, in.Path)
	if err != nil {
		return nil, fileContent{}, err
	}
	out := fileContent{Path: line(in.Path), Size: info.Size, Offset: in.Offset}
	picture := in.Offset == 0 && in.Limit == 0 && info.Size <= s.cfg.MaxImageBytes
	most := int64(s.cfg.MaxText)
	if in.Limit > 0 {
		most = min(in.Limit, most)
	}
	w := &window{skip: in.Offset, most: most}
	if picture {
		w.most = s.cfg.MaxImageBytes
	}
	if _, err := sb.ReadFileTo(ctx, in.Path, w); err != nil && !errors.Is(err, errEnough) {
		return nil, fileContent{}, err
	}
	mime := artifact.TypeOf(info.Name, w.bytes)
	if picture && isPicture(mime) {
		out.MIME, out.Encoding, out.Bytes = mime, "image", int64(len(w.bytes))
		return &sdk.CallToolResult{Content: []sdk.Content{
			&sdk.ImageContent{Data: w.bytes, MIMEType: mime}, &sdk.TextContent{Text: jsonText(out)},
		}}, out, nil
	}
	out.take(w.bytes[:min(int64(len(w.bytes)), most)], mime)
	return nil, out, nil
}

// take takes up a piece of a file: as text where it is that, but for a character that the
// piece's end cuts in two.
func (f *fileContent) take(piece []byte, mime string) {
	whole := piece
	for cut := 0; cut < utf8.UTFMax && len(whole) > 0 && !utf8.Valid(whole); cut++ {
		whole = whole[:len(whole)-1]
	}
	if (len(whole) > 0 || len(piece) == 0) && utf8.Valid(whole) && bytes.IndexByte(whole, 0) < 0 {
		piece = whole
		f.Encoding, f.Content = "text", clean(string(piece))
		if mime == artifact.Binary {
			mime = artifact.Text
		}
	} else {
		f.Encoding, f.Content = "base64", base64.StdEncoding.EncodeToString(piece)
	}
	f.MIME, f.Bytes = mime, int64(len(piece))
	if end := f.Offset + f.Bytes; end < f.Size {
		f.Next = end
	}
}
