package httpapi

import (
	"context"
	"net/http"
	"strconv"

	"github.com/danielgtaylor/huma/v2"

	"github.com/llmsandbox/llmsandbox"
	"github.com/llmsandbox/llmsandbox/internal/apitypes"
)

const tarType = "application/x-tar"

// An archive is a request whose body is a tar archive.
type archive struct {
	bodyReader

	ID   string `path:"id" maxLength:"40" doc:"The sandbox's id" example:"sb-0a1b2c3d-k3v9x7m2p4qnr6tw"`
	Path string `query:"path" required:"true" minLength:"1" maxLength:"4096" doc:"A directory" example:"project"`
}

// archiveRoutes move directories as tar archives, which stream: the server keeps nothing of them.
func (s *Server) archiveRoutes() {
	const tag, path = "Files", "/v1/sandboxes/{id}/files/archive"
	op := onSandbox(s, operation{
		id: "read-archive", method: http.MethodGet, path: path, tag: tag, summary: "Read a file or directory as a tar archive",
		doc: "It has regular files and directories, and names that lead nowhere else. How much was left out, links above all, is in the trailer " + apitypes.SkippedTrailer + ".",
	}, func(_ context.Context, sb *llmsandbox.Sandbox, in *struct {
		ID   string `path:"id" maxLength:"40" doc:"The sandbox's id" example:"sb-0a1b2c3d-k3v9x7m2p4qnr6tw"`
		Path string `query:"path" required:"true" minLength:"1" maxLength:"4096" doc:"Absolute, or relative to the working directory" example:"project"`
		Name string `query:"name" maxLength:"255" pattern:"^[^/]*$" doc:"What it is called in the archive; its own name where it is left out"`
	}) (*huma.StreamResponse, error) {
		return s.tar(func(w *contentWriter) (llmsandbox.CopyResult, error) {
			return sb.TarOut(w.c.Context(), in.Path, in.Name, w)
		}), nil
	})
	op.Responses["200"] = &huma.Response{Description: "The archive", Content: binary(tarType)}
	answerOf(s, operation{
		id: "write-archive", method: http.MethodPut, path: path, tag: tag, write: true, summary: "Unpack a tar archive into a directory",
		doc: "The directory is made if need be, and files take the place of those that are there. Links and unsafe names are left out. Where it fails, what has come of it is left.",
	}, func(ctx context.Context, sb *llmsandbox.Sandbox, in *archive) (apitypes.Unpacked, error) {
		res, err := sb.TarIn(ctx, in.body, in.Path)
		return unpackedOf(res), err
	}).RequestBody = &huma.RequestBody{Required: true, Content: binary(tarType, octets)}
}

// tar is an answer that is a tar archive, with how much was left out behind it.
func (s *Server) tar(write func(*contentWriter) (llmsandbox.CopyResult, error)) *huma.StreamResponse {
	return s.content(http.StatusOK, map[string]string{"Content-Type": tarType, "Trailer": apitypes.SkippedTrailer}, func(w *contentWriter) error {
		res, err := write(w)
		if err == nil {
			w.c.SetHeader(apitypes.SkippedTrailer, strconv.Itoa(len(res.Skipped)))
		}
		return err
	})
}

func unpackedOf(res llmsandbox.CopyResult) apitypes.Unpacked {
	return apitypes.Unpacked{Files: res.Files, Bytes: res.Bytes, Skipped: apitypes.All(res.Skipped, text)}
}
