package httpapi

import (
	"context"
	"net/http"
	"strings"

	"github.com/danielgtaylor/huma/v2"

	"github.com/llmsandbox/llmsandbox"
	"github.com/llmsandbox/llmsandbox/internal/apitypes"
)

// volumeMounts are those of a request.
func volumeMounts(asked []apitypes.VolumeMount) []llmsandbox.VolumeMount {
	return apitypes.All(asked, func(v apitypes.VolumeMount) llmsandbox.VolumeMount { return llmsandbox.VolumeMount(v) })
}

// A volumeArchive is a request whose body is a tar archive for a volume.
type volumeArchive struct {
	bodyReader

	Name string `path:"name" maxLength:"255" doc:"The volume's name" example:"cache"`
	Path string `query:"path" required:"true" minLength:"1" maxLength:"4096" doc:"A directory of the volume, whose own is /" example:"/"`
}

// isVolumeArchive reports whether archives of a volume are at a path.
func isVolumeArchive(path string) bool {
	return strings.HasPrefix(path, "/v1/volumes/") && strings.HasSuffix(path, "/archive")
}

func (s *Server) volumeRoutes() {
	const tag = "Volumes"
	answer(s, operation{
		id: "list-volumes", method: http.MethodGet, path: "/v1/volumes", tag: tag, summary: "List the project's volumes", doc: "Sorted by name.",
	}, func(ctx context.Context, _ *struct{}) (apitypes.Volumes, error) {
		list, err := s.service.Volumes(ctx, s.caller(ctx).Project)
		return apitypes.Volumes{Volumes: apitypes.All(list, describeVolume)}, err
	})
	answer(s, operation{
		id: "create-volume", method: http.MethodPost, path: "/v1/volumes", tag: tag, status: http.StatusCreated, write: true, summary: "Create an empty volume",
		doc: "It stays until it is removed. Sandboxes can have it one after the other, and several at the same time.",
	}, func(ctx context.Context, in *struct{ Body apitypes.NewVolume }) (apitypes.Volume, error) {
		trailOf(ctx).detail = "volume " + in.Body.Name
		v, err := s.service.CreateVolume(ctx, s.caller(ctx).Project, llmsandbox.Volume{Name: in.Body.Name, Labels: in.Body.Labels, Size: in.Body.Size})
		return describeVolume(v), err
	})
	register(s, operation{
		id: "remove-volume", method: http.MethodDelete, path: "/v1/volumes/{name}", tag: tag, status: http.StatusNoContent, write: true, summary: "Remove a volume with all that is in it",
		doc: "While a sandbox has it, it is not removed, unless that is forced: then the sandbox lives on without the files.",
	}, func(ctx context.Context, in *struct {
		Name  string `path:"name" maxLength:"255" doc:"The volume's name" example:"cache"`
		Force bool   `query:"force" doc:"Also while a sandbox has it"`
	}) (*struct{}, error) {
		trailOf(ctx).detail = "volume " + in.Name
		return nil, s.service.RemoveVolume(ctx, s.caller(ctx).Project, in.Name, in.Force)
	})
	const path = "/v1/volumes/{name}/archive"
	register(s, operation{
		id: "read-volume", method: http.MethodGet, path: path, tag: tag, summary: "Read a file or directory of a volume as a tar archive",
		doc: "It has regular files and directories, and names that lead nowhere else. How much was left out, links above all, is in the trailer " + apitypes.SkippedTrailer + ".",
	}, func(ctx context.Context, in *struct {
		Name   string `path:"name" maxLength:"255" doc:"The volume's name" example:"cache"`
		Path   string `query:"path" required:"true" minLength:"1" maxLength:"4096" doc:"A path in the volume, whose own directory is /" example:"/"`
		Member string `query:"name" maxLength:"255" pattern:"^[^/]*$" doc:"What it is called in the archive; its own name where it is left out"`
	}) (*huma.StreamResponse, error) {
		return s.tar(func(w *contentWriter) (llmsandbox.CopyResult, error) {
			return s.service.TarFromVolume(w.c.Context(), s.caller(ctx).Project, in.Name, in.Path, in.Member, w)
		}), nil
	}).Responses["200"] = &huma.Response{Description: "The archive", Content: binary(tarType)}
	answer(s, operation{
		id: "write-volume", method: http.MethodPut, path: path, tag: tag, write: true, summary: "Unpack a tar archive into a directory of a volume",
		doc: "The directory is made if need be, and files take the place of those that are there. Links and unsafe names are left out. Where it fails, what has come of it is left.",
	}, func(ctx context.Context, in *volumeArchive) (apitypes.Unpacked, error) {
		trailOf(ctx).detail = "volume " + in.Name
		res, err := s.service.TarToVolume(ctx, s.caller(ctx).Project, in.body, in.Name, in.Path)
		return unpackedOf(res), err
	}).RequestBody = &huma.RequestBody{Required: true, Content: binary(tarType, octets)}
}

func describeVolume(v llmsandbox.Volume) apitypes.Volume {
	v.Created = v.Created.UTC()
	return apitypes.Volume(v)
}
