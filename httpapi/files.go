package httpapi

import (
	"context"
	"fmt"
	"io"
	"io/fs"
	"math"
	"net/http"
	"strconv"
	"strings"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humago"

	"github.com/llmsandbox/llmsandbox"
	"github.com/llmsandbox/llmsandbox/internal/apitypes"
)

func entry(i llmsandbox.FileInfo) apitypes.FileEntry {
	kind := "other"
	switch {
	case i.Mode.IsRegular():
		kind = "file"
	case i.IsDir():
		kind = "directory"
	case i.Mode&fs.ModeSymlink != 0:
		kind = "link"
	}
	return apitypes.FileEntry{Name: text(i.Name), Type: kind, Size: i.Size, Mode: "0" + strconv.FormatUint(uint64(i.Mode.Perm()), 8), Modified: i.ModTime.UTC(), Link: text(i.Link)}
}

type filePath struct {
	ID   string `path:"id" maxLength:"40" doc:"The sandbox's id" example:"sb-0a1b2c3d-k3v9x7m2p4qnr6tw"`
	Path string `query:"path" required:"true" minLength:"1" maxLength:"4096" doc:"Absolute, or relative to the working directory" example:"data.csv"`
}

// A bodyReader is of a request whose body is left to its handler to read.
type bodyReader struct{ body io.Reader }

// Resolve implements huma.Resolver.
func (b *bodyReader) Resolve(ctx huma.Context) []error {
	r, _ := humago.Unwrap(ctx)
	b.body = r.Body
	return nil
}

// An upload is a request whose body is the content of a file.
type upload struct {
	bodyReader

	ID   string `path:"id" maxLength:"40" doc:"The sandbox's id" example:"sb-0a1b2c3d-k3v9x7m2p4qnr6tw"`
	Path string `query:"path" required:"true" minLength:"1" maxLength:"4096" doc:"Absolute, or relative to the working directory" example:"data.csv"`
	Mode string `query:"mode" pattern:"^0?[0-7]{3}$" doc:"Permissions in octal; 0644, or those of the file that it takes the place of, where they are left out"`
}

const octets = "application/octet-stream"

// binary describes a body of bytes of any of these types.
func binary(kinds ...string) map[string]*huma.MediaType {
	types := map[string]*huma.MediaType{}
	for _, kind := range kinds {
		types[kind] = &huma.MediaType{Schema: &huma.Schema{Type: huma.TypeString, Format: "binary"}}
	}
	return types
}

// ranges describes the answer of an operation that reads a file.
func ranges(op *huma.Operation) {
	op.Responses["200"] = &huma.Response{Description: "Its content", Content: binary(octets)}
	op.Responses["206"] = &huma.Response{Description: "The part of it that Range names", Content: binary(octets)}
}

func (s *Server) fileRoutes() {
	const tag, path = "Files", "/v1/sandboxes/{id}/files"
	ranges(onSandbox(s, operation{
		id: "read-file", method: http.MethodGet, path: path, tag: tag, summary: "Read a file, or a part of it",
	}, func(ctx context.Context, sb *llmsandbox.Sandbox, in *struct {
		ID      string `path:"id" maxLength:"40" doc:"The sandbox's id" example:"sb-0a1b2c3d-k3v9x7m2p4qnr6tw"`
		Path    string `query:"path" required:"true" minLength:"1" maxLength:"4096" doc:"Absolute, or relative to the working directory" example:"data.csv"`
		Range   string `header:"Range" doc:"bytes=FIRST-LAST, FIRST- or -LENGTH: only that part. What is none of these, or several, is not looked at"`
		IfRange string `header:"If-Range" doc:"With it there are no parts: files have no version that could be compared"`
	}) (*huma.StreamResponse, error) {
		return s.readFile(ctx, sb, in.Path, ranged{in.Range, in.IfRange})
	}))
	onSandbox(s, operation{
		id: "write-file", method: http.MethodPut, path: path, tag: tag, status: http.StatusNoContent, write: true,
		summary: "Write a file", doc: "Directories on the way are made. It takes the place of one that is there. Where it fails, what has come of it is left.",
	}, func(ctx context.Context, sb *llmsandbox.Sandbox, in *upload) (*struct{}, error) {
		mode, _ := strconv.ParseUint(in.Mode, 8, 32) // it was checked; 0 where it is left out
		return nil, sb.WriteFileFrom(ctx, in.Path, in.body, fs.FileMode(mode))
	}).RequestBody = &huma.RequestBody{Required: true, Content: binary(octets)}
	onSandbox(s, operation{
		id: "remove-file", method: http.MethodDelete, path: path, tag: tag, status: http.StatusNoContent, write: true,
		summary: "Remove a file, or a directory with all that is in it",
	}, func(ctx context.Context, sb *llmsandbox.Sandbox, in *filePath) (*struct{}, error) {
		return nil, sb.Remove(ctx, in.Path)
	})
	answerOf(s, operation{
		id: "stat-file", method: http.MethodGet, path: path + "/stat", tag: tag, summary: "Describe a file, directory or link",
	}, func(ctx context.Context, sb *llmsandbox.Sandbox, in *filePath) (apitypes.FileEntry, error) {
		i, err := sb.Stat(ctx, in.Path)
		return entry(i), err
	})
	answerOf(s, operation{
		id: "list-directory", method: http.MethodGet, path: path + "/list", tag: tag, summary: "List a directory",
	}, func(ctx context.Context, sb *llmsandbox.Sandbox, in *filePath) (apitypes.Files, error) {
		list, err := sb.ListDir(ctx, in.Path)
		return apitypes.Files{Entries: apitypes.All(list, entry)}, err
	})
	onSandbox(s, operation{
		id: "make-directory", method: http.MethodPost, path: path + "/mkdir", tag: tag, status: http.StatusNoContent, write: true,
		summary: "Make a directory, with those on the way",
	}, func(ctx context.Context, sb *llmsandbox.Sandbox, in *filePath) (*struct{}, error) {
		return nil, sb.Mkdir(ctx, in.Path)
	})
	onSandbox(s, operation{
		id: "rename-file", method: http.MethodPost, path: path + "/rename", tag: tag, status: http.StatusNoContent, write: true, summary: "Rename a file or directory",
	}, func(ctx context.Context, sb *llmsandbox.Sandbox, in *struct {
		ID   string `path:"id" maxLength:"40" doc:"The sandbox's id" example:"sb-0a1b2c3d-k3v9x7m2p4qnr6tw"`
		Path string `query:"path" required:"true" minLength:"1" maxLength:"4096" doc:"Absolute, or relative to the working directory" example:"data.csv"`
		To   string `query:"to" required:"true" minLength:"1" maxLength:"4096" doc:"Its new path"`
	}) (*struct{}, error) {
		return nil, sb.Rename(ctx, in.Path, in.To)
	})
}

// readFile answers with a file as it is read, or with a range of it.
func (s *Server) readFile(ctx context.Context, sb *llmsandbox.Sandbox, path string, asked ranged) (*huma.StreamResponse, error) {
	i, err := sb.Stat(ctx, path)
	if err != nil {
		return nil, err
	}
	if i.IsDir() {
		return nil, fmt.Errorf("read %q: %w: it is a directory: list it", path, llmsandbox.ErrInvalid)
	}
	if !i.Mode.IsRegular() { // the size is not that of what a link leads to
		asked = ranged{}
	}
	from, length, ok := asked.of(i.Size)
	switch {
	case !ok:
		p := newProblem(http.StatusRequestedRangeNotSatisfiable, "range", fmt.Sprintf("Range: the file has %d bytes, and none of them is asked for", i.Size))
		p.headers = http.Header{"Content-Range": {fmt.Sprintf("bytes */%d", i.Size)}}
		return nil, p
	case length == 0:
		return s.content(http.StatusOK, map[string]string{"Content-Type": octets, "Accept-Ranges": "bytes"}, func(w *contentWriter) error {
			_, err := sb.ReadFileTo(ctx, path, w)
			return err
		}), nil
	}
	return s.content(http.StatusPartialContent, map[string]string{
		"Content-Type": octets, "Accept-Ranges": "bytes", "Content-Length": strconv.FormatInt(length, 10),
		"Content-Range": fmt.Sprintf("bytes %d-%d/%d", from, from+length-1, i.Size),
	}, func(w *contentWriter) error {
		n, err := sb.ReadFileRange(ctx, path, from, length, w)
		if err == nil && n < length {
			err = fmt.Errorf("read %q: %w: it has become shorter", path, llmsandbox.ErrInvalid)
		}
		return err
	}), nil
}

// ranged are the headers Range and If-Range of a request.
type ranged struct{ Range, IfRange string }

// of is where the range of a file of a size begins, and how much it has; 0: the file is asked for as a whole. Where ok is false, the file has nothing of
// the range.
func (r ranged) of(size int64) (from, length int64, ok bool) {
	spec, isBytes := strings.CutPrefix(r.Range, "bytes=")
	first, last, isRange := strings.Cut(spec, "-")
	if !isBytes || !isRange || r.IfRange != "" || first == "" && last == "" || strings.Trim(first+last, "0123456789") != "" {
		return 0, 0, true
	}
	number := func(digits string, missing int64) int64 {
		if digits == "" {
			return missing
		}
		n, _ := strconv.ParseInt(digits, 10, 64) // the largest, where it is larger
		return n
	}
	if first == "" {
		length = min(number(last, 0), size)
		return size - length, length, length > 0
	}
	from, to := number(first, 0), number(last, math.MaxInt64)
	switch {
	case to < from:
		return 0, 0, true
	case from >= size:
		return 0, 0, false
	}
	return from, min(to, size-1) - from + 1, true
}

// content answers with what write writes. What fails before the first byte is a problem; later, the connection is ended, so that
// no client takes a part of a file for all of it.
func (s *Server) content(status int, headers map[string]string, write func(*contentWriter) error) *huma.StreamResponse {
	return &huma.StreamResponse{Body: func(c huma.Context) {
		w := &contentWriter{c: c, status: status, headers: headers}
		err := write(w)
		switch {
		case err == nil:
			w.begin()
		case !w.begun:
			s.write(c, s.problem(c.Context(), err))
		default:
			panic(http.ErrAbortHandler)
		}
	}}
}

// A contentWriter begins an answer with its first byte.
type contentWriter struct {
	c       huma.Context
	status  int
	headers map[string]string
	begun   bool
}

func (w *contentWriter) begin() {
	if !w.begun {
		w.begun = true
		for name, value := range w.headers {
			w.c.SetHeader(name, value)
		}
		w.c.SetHeader("Content-Disposition", "attachment") // no browser shows what comes from inside
		w.c.SetStatus(w.status)
	}
}

func (w *contentWriter) Write(p []byte) (int, error) {
	w.begin()
	return w.c.BodyWriter().Write(p)
}
