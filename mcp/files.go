package mcp

import (
	"bytes"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/llmsandbox/llmsandbox"
	"github.com/llmsandbox/llmsandbox/artifact"
	"github.com/llmsandbox/llmsandbox/internal/bytesize"
)

// Bounds of files and lists.
const (
	maxWrite   = 16 << 20 // bytes of content, as text or base64
	maxEntries = 1000
)

type listArgs struct {
	SessionID string `json:"session_id"`
	Path      string `json:"path,omitempty"`
}

type entryNote struct {
	Name     string `json:"name"`
	Type     string `json:"type"` // file, directory, link or other
	Size     int64  `json:"size"`
	Modified string `json:"modified"` // as in RFC 3339
	Link     string `json:"link,omitempty"`
}

type listing struct {
	Entries []entryNote `json:"entries"`
	Omitted int         `json:"omitted,omitempty"`
}

type writeArgs struct {
	SessionID string `json:"session_id"`
	Path      string `json:"path"`
	Content   string `json:"content"`
	Encoding  string `json:"encoding,omitempty"`
}

type written struct {
	Path  string `json:"path"`
	Bytes int    `json:"bytes"`
}

func (s *Server) addFiles() {
	add(s, tool{
		name: "list_files", title: "List files", description: "List a directory in a session.",
		hints:  hints{readOnly: true, idempotent: true},
		bounds: func(p properties) { p["path"].Default = []byte(`"."`) },
	}, s.listFiles)
	add(s, tool{
		name: "read_file", title: "Read a file",
		description: "Read a file in a session: text as text, an image as an image, other content as base64.",
		hints:       hints{readOnly: true, idempotent: true},
		bounds:      func(p properties) { p["offset"].Minimum, p["limit"].Minimum = new(0.0), new(1.0) },
	}, s.readFile)
	add(s, tool{
		name: "write_file", title: "Write a file", description: "Create or overwrite a file in a session. Missing directories are created.",
		hints: hints{destructive: true, idempotent: true},
		bounds: func(p properties) {
			p["content"].MaxLength = new(maxWrite)
			p["encoding"].Enum, p["encoding"].Default = []any{"text", "base64"}, []byte(`"text"`)
		},
	}, s.writeFile)
	add(s, tool{
		name: "edit_file", title: "Edit a file",
		description: "Replace a text in a file in a session. It must occur exactly once, unless replace_all is true.",
		hints:       hints{destructive: true},
		bounds: func(p properties) {
			p["old_text"].MaxLength, p["new_text"].MaxLength = new(maxCode), new(maxCode)
		},
	}, s.editFile)
}

func (s *Server) listFiles(ctx context.Context, c *call, in listArgs) (*sdk.CallToolResult, listing, error) {
	w, done, err := s.use(c, in.SessionID)
	if err != nil {
		return nil, listing{}, err
	}
	defer done()
	files, err := w.sandbox.ListDir(ctx, in.Path)
	if err != nil {
		return nil, listing{}, err
	}
	files = slices.DeleteFunc(files, func(f llmsandbox.FileInfo) bool { return ours(f.Name) })
	out := listing{Entries: []entryNote{}}
	for i, f := range files {
		if i == maxEntries {
			out.Omitted = len(files) - i
			break
		}
		kind := "other"
		switch {
		case f.IsDir():
			kind = "directory"
		case f.Link != "":
			kind = "link"
		case f.Mode.IsRegular():
			kind = "file"
		}
		out.Entries = append(out.Entries, entryNote{
			Name: line(f.Name), Type: kind, Size: f.Size, Modified: f.ModTime.UTC().Format(time.RFC3339), Link: line(f.Link),
		})
	}
	return nil, out, nil
}

// ours reports whether a name is that of a directory or file in which runs and interpreters of a session
// have what is theirs, while they go on.
func ours(name string) bool {
	return strings.HasPrefix(name, ".kernel-") || strings.HasPrefix(name, ".run-") || strings.HasPrefix(name, ".llmsandbox-")
}

func (s *Server) writeFile(ctx context.Context, c *call, in writeArgs) (*sdk.CallToolResult, written, error) {
	w, done, err := s.use(c, in.SessionID)
	if err != nil {
		return nil, written{}, err
	}
	defer done()
	data := []byte(in.Content)
	if in.Encoding == "base64" {
		if data, err = base64.StdEncoding.DecodeString(in.Content); err != nil {
			return nil, written{}, fmt.Errorf("content is not valid base64 (%w): omit encoding if it is text", err)
		}
	}
	if in.Path == "" {
		return nil, written{}, errNoPath
	}
	if err := w.sandbox.WriteFile(ctx, in.Path, data); err != nil {
		return nil, written{}, err
	}
	return nil, written{Path: line(in.Path), Bytes: len(data)}, nil
}

var errNoPath = errors.New("path must not be empty")

type editArgs struct {
	SessionID  string `json:"session_id"`
	Path       string `json:"path"`
	OldText    string `json:"old_text"`
	NewText    string `json:"new_text"`
	ReplaceAll bool   `json:"replace_all,omitempty"`
}

type edited struct {
	Path     string `json:"path"`
	Replaced int    `json:"replaced"`
}

func (s *Server) editFile(ctx context.Context, c *call, in editArgs) (*sdk.CallToolResult, edited, error) {
	w, done, err := s.use(c, in.SessionID)
	if err != nil {
		return nil, edited{}, err
	}
	defer done()
	if in.OldText == "" {
		return nil, edited{}, errors.New("old_text must not be empty: use write_file to replace the whole file")
	}
	whole := &window{most: maxWrite}
	if _, err := w.sandbox.ReadFileTo(ctx, in.Path, whole); errors.Is(err, errEnough) {
		return nil, edited{}, fmt.Errorf("the file is larger than %s: edit it with code", bytesize.Format(maxWrite))
	} else if err != nil {
		return nil, edited{}, err
	}
	switch n := bytes.Count(whole.bytes, []byte(in.OldText)); {
	case n == 0:
		return nil, edited{}, errors.New("old_text does not occur in the file: it must match exactly, including white space")
	case n > 1 && !in.ReplaceAll:
		return nil, edited{}, fmt.Errorf("old_text occurs %d times in the file: add lines around it until it is unique, or set replace_all", n)
	default:
		data := bytes.ReplaceAll(whole.bytes, []byte(in.OldText), []byte(in.NewText))
		if err := w.sandbox.WriteFile(ctx, in.Path, data); err != nil {
			return nil, edited{}, err
		}
		return nil, edited{Path: line(in.Path), Replaced: n}, nil
	}
}

type readArgs struct {
	SessionID string `json:"session_id"`
	Path      string `json:"path"`
	Offset    int64  `json:"offset,omitempty" jsonschema:"first byte"`
	Limit     int64  `json:"limit,omitempty" jsonschema:"most bytes"`
}

// fileContent is what was read. Content is empty when an image is in the content of the result.
type fileContent struct {
	Path     string `json:"path"`
	MIME     string `json:"mime"`
	Size     int64  `json:"size"` // bytes of the whole file
	Offset   int64  `json:"offset"`
	Bytes    int64  `json:"bytes"`    // that were read
	Encoding string `json:"encoding"` // of content: text, base64, or image where the image is beside it
	Content  string `json:"content"`
	Next     int64  `json:"next_offset,omitempty" jsonschema:"where to read on"`
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
	w, done, err := s.use(c, in.SessionID)
	if err != nil {
		return nil, fileContent{}, err
	}
	defer done()
	sb := w.sandbox
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
	piece := &window{skip: in.Offset, most: most}
	if picture {
		piece.most = s.cfg.MaxImageBytes
	}
	if _, err := sb.ReadFileTo(ctx, in.Path, piece); err != nil && !errors.Is(err, errEnough) {
		return nil, fileContent{}, err
	}
	mime := artifact.TypeOf(info.Name, piece.bytes)
	if picture && isPicture(mime) {
		out.MIME, out.Encoding, out.Bytes = mime, "image", int64(len(piece.bytes))
		return &sdk.CallToolResult{Content: []sdk.Content{
			&sdk.ImageContent{Data: piece.bytes, MIMEType: mime}, &sdk.TextContent{Text: jsonText(out)},
		}}, out, nil
	}
	out.take(piece.bytes[:min(int64(len(piece.bytes)), most)], mime)
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
