package httpapi

import (
	"context"
	"errors"
	"net/http"

	"github.com/llmsandbox/llmsandbox"
	"github.com/llmsandbox/llmsandbox/internal/apitypes"
	"github.com/llmsandbox/llmsandbox/internal/service/images"
)

func (s *Server) imageRoutes() {
	const tag = "Images"
	answer(s, operation{
		id: "commit-sandbox", method: http.MethodPost, path: "/v1/sandboxes/{id}/commit", tag: tag, status: http.StatusCreated, write: true, summary: "Make an image of a sandbox",
		doc: "Of its working directory, and of its root filesystem where that could be written to. Programs, /tmp and the environment are not part of it. It stays until it is removed.",
	}, func(ctx context.Context, in *struct {
		ID   string `path:"id" maxLength:"40" doc:"The sandbox's id" example:"sb-0a1b2c3d-k3v9x7m2p4qnr6tw"`
		Body apitypes.NewImage
	}) (apitypes.MadeImage, error) {
		trailOf(ctx).detail = "image " + in.Body.Name
		made, skipped, err := s.service.Commit(ctx, s.caller(ctx).Project, in.ID, images.Image{Name: in.Body.Name, Labels: in.Body.Labels}, in.Body.Replace, nil)
		return apitypes.MadeImage{Image: apitypes.Image(made), Skipped: skipped}, err
	})
	answer(s, operation{
		id: "list-images", method: http.MethodGet, path: "/v1/images", tag: tag, summary: "List the project's images", doc: "Sorted by name.",
	}, func(ctx context.Context, _ *struct{}) (apitypes.Images, error) {
		list, err := s.service.Images(s.caller(ctx).Project)
		return apitypes.Images{Images: apitypes.All(list, func(i images.Image) apitypes.Image { return apitypes.Image(i) })}, err
	})
	register(s, operation{
		id: "remove-image", method: http.MethodDelete, path: "/v1/images/{name}", tag: tag, status: http.StatusNoContent, write: true, summary: "Remove an image of the project",
		doc: "While a sandbox that was made from it lives, it is not removed.",
	}, func(ctx context.Context, in *struct {
		Name string `path:"name" maxLength:"127" doc:"The image's name" example:"tools"`
	}) (*struct{}, error) {
		trailOf(ctx).detail = "image " + in.Name
		err := s.service.RemoveImage(ctx, s.caller(ctx).Project, in.Name)
		if errors.Is(err, llmsandbox.ErrImageNotFound) { // what the path names, and not a part of the request
			err = newProblem(http.StatusNotFound, "image_not_found", err.Error())
		}
		return nil, err
	})
}
