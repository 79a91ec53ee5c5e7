package httpapi

import (
	"context"
	"fmt"
	"io"
	"io/fs"
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
	clean := func(s string) string { return strings.ToValidUTF8(s, "\uFFFD") } // names come from inside, and JSON has text only
	return apitypes.FileEntry{Name: clean(i.Name), Type: kind, Size: i.Size, Mode: "0" + strconv.FormatUint(uint64(i.Mode.Perm()), 8), Modified: i.ModTime.UTC(), Link: clean(i.Link)}
}

type filePath struct {
	ID   string `path:"id" maxLength:"40" doc:"The sandbox's id" example:"sb-0a1b2c3d-k3v9x7m2p4qnr6tw"`
	Path string `query:"path" required:"true" minLength:"1" maxLength:"4096" doc:"Absolute, or relative to the working directory" example:"data.csv"`
}

type entryAnswer struct{ Body apitypes.FileEntry }

// An upload is a request whose body is the content of a file.
type upload struct {
	ID   string `path:"id" maxLength:"40" doc:"The sandbox's id" example:"sb-0a1b2c3d-k3v9x7m2p4qnr6tw"`
	Path string `query:"path" required:"true" minLength:"1" maxLength:"4096" doc:"Absolute, or relative to the working directory" example:"data.csv"`
	Mode string `query:"mode" pattern:"^0?[0-7]{3}$" doc:"Permissions in octal; 0644, or those of the file that it takes the place of, where they are left out"`

	body io.Reader
}

// Resolve implements huma.Resolver.
func (u *upload) Resolve(ctx huma.Context) []error {
	r, _ := humago.Unwrap(ctx)
	u.body = r.Body
	return nil
}

const octets = "application/octet-stream"

func (s *Server) fileRoutes() {
	const tag, path = "Files", "/v1/sandboxes/{id}/files"
	binary := map[string]*huma.MediaType{octets: {Schema: &huma.Schema{Type: huma.TypeString, Format: "binary"}}}
	onSandbox(s, operation{
		id: "read-file", method: http.MethodGet, path: path, tag: tag, summary: "Read a file",
	}, s.readFile).Responses["200"] = &huma.Response{Description: "Its content", Content: binary}
	onSandbox(s, operation{
		id: "write-file", method: http.MethodPut, path: path, tag: tag, status: http.StatusNoContent, write: true,
		summary: "Write a file", doc: "Directories on the way are made. It takes the place of one that is there. Where it fails, what has come of it is left.",
	}, func(ctx context.Context, sb *llmsandbox.Sandbox, in *upload) (*struct{}, error) {
		mode, _ := strconv.ParseUint(in.Mode, 8, 32) // it was checked; 0 where it is left out
		return nil, sb.WriteFileFrom(ctx, in.Path, in.body, fs.FileMode(mode))
	}).RequestBody = &huma.RequestBody{Required: true, Content: binary}
	onSandbox(s, operation{
		id: "remove-file", method: http.MethodDelete, path: path, tag: tag, status: http.StatusNoContent, write: true,
		summary: "Remove a file, or a directory with all that is in it",
	}, func(ctx context.Context, sb *llmsandbox.Sandbox, in *filePath) (*struct{}, error) {
		return nil, sb.Remove(ctx, in.Path)
	})
	onSandbox(s, operation{
		id: "stat-file", method: http.MethodGet, path: path + "/stat", tag: tag, summary: "Describe a file, directory or link",
	}, func(ctx context.Context, sb *llmsandbox.Sandbox, in *filePath) (*entryAnswer, error) {
		i, err := sb.Stat(ctx, in.Path)
		if err != nil {
			return nil, err
		}
		return &entryAnswer{entry(i)}, nil
	})
	type listing struct {
		Body struct {
			Entries []apitypes.FileEntry `json:"entries" nullable:"false"`
		}
	}
	onSandbox(s, operation{
		id: "list-directory", method: http.MethodGet, path: path + "/list", tag: tag, summary: "List a directory",
	}, func(ctx context.Context, sb *llmsandbox.Sandbox, in *filePath) (*listing, error) {
		list, err := sb.ListDir(ctx, in.Path)
		if err != nil {
			return nil, err
		}
		out := &listing{}
		out.Body.Entries = make([]apitypes.FileEntry, 0, len(list))
		for _, i := range list {
			out.Body.Entries = append(out.Body.Entries, entry(i))
		}
		return out, nil
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

// readFile answers with a file as it is read. What fails before its first byte is a problem; later, the connection is ended, so that
// no client takes a part of a file for all of it.
func (s *Server) readFile(ctx context.Context, sb *llmsandbox.Sandbox, in *filePath) (*huma.StreamResponse, error) {
	i, err := sb.Stat(ctx, in.Path)
	if err != nil {
		return nil, err
	}
	if i.IsDir() {
		return nil, fmt.Errorf("read %q: %w: it is a directory: list it", in.Path, llmsandbox.ErrInvalid)
	}
	return &huma.StreamResponse{Body: func(c huma.Context) {
		w := &contentWriter{c: c}
		_, err := sb.ReadFileTo(ctx, in.Path, w)
		switch {
		case err == nil:
			w.begin()
		case !w.begun:
			s.write(c, s.problem(ctx, err))
		default:
			panic(http.ErrAbortHandler)
		}
	}}, nil
}

// A contentWriter begins an answer with its first byte.
type contentWriter struct {
	c     huma.Context
	begun bool
}

func (w *contentWriter) begin() {
	if !w.begun {
		w.begun = true
		w.c.SetHeader("Content-Type", octets)
		w.c.SetHeader("Content-Disposition", "attachment") // no browser shows what comes from inside
		w.c.SetStatus(http.StatusOK)
	}
}

func (w *contentWriter) Write(p []byte) (int, error) {
	w.begin()
	return w.c.BodyWriter().Write(p)
}
