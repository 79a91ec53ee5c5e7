package e2b

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/llmsandbox/llmsandbox"
	"github.com/llmsandbox/llmsandbox/internal/apitypes"
	"github.com/llmsandbox/llmsandbox/internal/service/images"
)

// snapshotLabel of an image is the sandbox that it is a snapshot of. The project can see and set it.
const snapshotLabel = "e2b.snapshot"

// defaultTag is what SDKs add to names that have no tag.
const defaultTag = ":default"

// imageName is the name of the project's image that a template, or snapshot, is.
func imageName(template string) string { return strings.TrimSuffix(template, defaultTag) }

// A snapshot is one as SDKs see it: an image of the project.
type snapshot struct {
	ID    string   `json:"snapshotID"`
	Names []string `json:"names"`
}

// generated begins the names of snapshots to which nobody gave one.
const generated = "snapshot-"

func describeSnapshot(name string) snapshot {
	s := snapshot{name, []string{}}
	if !strings.HasPrefix(name, generated) {
		s.Names = []string{name}
	}
	return s
}

// errNoRoot: with an image, the working directory is the SDKs' only where the root can be written to.
var errNoRoot = refusal(http.StatusBadRequest, "this server has no snapshots and builds no templates: sandboxes begin with their files where the operator has set --writable-root and --max-images")

func (s *Server) snapshot(ctx context.Context, _ http.ResponseWriter, r *request) (int, any, error) {
	var in struct {
		Name   string `json:"name"`
		Memory *bool  `json:"memory"`
	}
	if err := r.read(&in); err != nil {
		return 0, nil, err
	}
	if in.Memory != nil && *in.Memory {
		return 0, nil, refusal(http.StatusBadRequest, "memory: a snapshot of this server has files only, and nothing that runs: ask for the mode filesystem, or for none")
	}
	if !s.service.Sandbox().WritableRoot {
		return 0, nil, errNoRoot
	}
	name := cmp.Or(imageName(in.Name), generated+strings.ToLower(rand.Text()[:16]))
	again, err := s.hasImage(r.caller.Project, name, snapshotLabel) // a template or image by that name stays
	if err != nil {
		return 0, nil, err
	}
	sb, err := s.service.Get(ctx, r.caller.Project, r.id)
	if err != nil {
		return 0, nil, err
	}
	labels := map[string]string{snapshotLabel: outerID(r.id)}
	if text := sb.Labels()[setupLabel]; text != "" {
		labels[setupLabel] = text
	}
	made, _, err := s.service.Commit(ctx, r.caller.Project, r.id, images.Image{Name: name, Labels: labels}, again, nil)
	if err != nil {
		return 0, nil, err
	}
	return http.StatusCreated, describeSnapshot(made.Name), nil
}

// hasImage reports whether a project has an image by a name that has a label.
func (s *Server) hasImage(project, name, label string) (bool, error) {
	i, err := s.service.Image(project, name)
	if errors.Is(err, llmsandbox.ErrImageNotFound) {
		err = nil
	}
	return i.Labels[label] != "", err
}

func (s *Server) listSnapshots(_ context.Context, w http.ResponseWriter, r *request) (int, any, error) {
	q := r.URL.Query()
	limit, err := limitOf(q)
	if err != nil {
		return 0, nil, err
	}
	all, err := s.service.Images(r.caller.Project)
	if err != nil {
		return 0, nil, err
	}
	after, err := base64.RawURLEncoding.DecodeString(q.Get("nextToken"))
	if err != nil {
		return 0, nil, refusal(http.StatusBadRequest, "nextToken: it is none of this server's")
	}
	sandbox, _, _ := strings.Cut(q.Get("sandboxID"), "-")
	name := imageName(q.Get("name"))
	all = slices.DeleteFunc(all, func(i images.Image) bool {
		short, _, _ := strings.Cut(i.Name, ":")
		of := i.Labels[snapshotLabel]
		return of == "" || sandbox != "" && of != sandbox || name != "" && name != i.Name && name != short || i.Name <= string(after)
	})
	if len(all) > limit {
		all = all[:limit]
		w.Header().Set("X-Next-Token", base64.RawURLEncoding.EncodeToString([]byte(all[limit-1].Name)))
	}
	list := make([]snapshot, 0, len(all))
	for _, i := range all {
		list = append(list, describeSnapshot(i.Name))
	}
	return http.StatusOK, list, nil
}

// removeTemplate removes a snapshot, or what was built.
func (s *Server) removeTemplate(ctx context.Context, _ http.ResponseWriter, r *request) (int, any, error) {
	err := s.service.RemoveImage(ctx, r.caller.Project, imageName(r.PathValue("template")))
	if errors.Is(err, llmsandbox.ErrImageNotFound) {
		return 0, nil, refusal(http.StatusNotFound, err.Error())
	}
	return http.StatusNoContent, nil, err
}

// maxTemplate is how long the name of a template of the operator's may be.
const maxTemplate = 40

// isTemplate reports whether a template of the operator's may be called so.
func isTemplate(name string) bool {
	return len(name) <= maxTemplate && strings.Trim(name, "abcdefghijklmnopqrstuvwxyz0123456789-") == ""
}

func noTemplate(name string) error {
	return refusal(http.StatusNotFound, fmt.Sprintf("template '%.130s' not found", valid(name)))
}

// fromTemplate gives options what a template has: an image of the project, or a template of the operator's. Where the image has a setup, it returns that.
func (s *Server) fromTemplate(project, template string, o *llmsandbox.Options) (text string, err error) {
	if slices.Contains(ownTemplates, template) {
		return "", nil
	}
	i, err := s.service.Image(project, imageName(template))
	switch {
	case err == nil:
		o.Image = apitypes.OwnImage + i.Name
		return i.Labels[setupLabel], nil
	case errors.Is(err, llmsandbox.ErrImageNotFound):
		if !isTemplate(template) {
			return "", noTemplate(template)
		}
		o.Template = template
		return "", nil
	}
	return "", err
}
