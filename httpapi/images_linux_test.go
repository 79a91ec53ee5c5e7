package httpapi

import (
	"context"
	"io/fs"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/llmsandbox/llmsandbox"
	"github.com/llmsandbox/llmsandbox/backend/local"
	"github.com/llmsandbox/llmsandbox/internal/apitypes"
	"github.com/llmsandbox/llmsandbox/internal/ociimage"
)

// filesBelow are the files below a directory, but for locks.
func filesBelow(t *testing.T, dir string) (all []string) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() && d.Name() != "lock" {
			all = append(all, path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func TestImages(t *testing.T) {
	t.Setenv("LLMSANDBOX_CACHE_DIR", t.TempDir())
	var mu sync.Mutex
	var events []AuditEvent
	dir := t.TempDir()
	backend := local.New(&local.Options{StateDir: t.TempDir()})
	c := serve(t, Config{
		MaxImages: 2, ImageDir: dir, Images: []string{"/*", "sha256:*"}, Sandbox: llmsandbox.Options{Backend: backend, WritableRoot: true},
		Audit: func(_ context.Context, more []AuditEvent) error {
			mu.Lock()
			defer mu.Unlock()
			events = append(events, more...)
			return nil
		},
	})
	b := c.as(keyB)
	names := func(c *client) (names []string) {
		t.Helper()
		var l struct{ Images []apitypes.Image }
		c.want(http.StatusOK, &l, http.MethodGet, "/v1/images", "")
		for _, i := range l.Images {
			names = append(names, i.Name)
		}
		return names
	}
	run := func(c *client, path, body, want string) {
		t.Helper()
		var res result
		c.want(http.StatusOK, &res, http.MethodPost, path, body)
		if res.Stdout != want {
			t.Errorf("%s: got %q %q, want %q", path, res.Stdout, res.Stderr, want)
		}
	}

	// What was written is in the image, and stays when the sandbox ends.
	first, _ := c.create(`{"language": "bash"}`)
	run(c, first+"/run", `{"code": "echo one >file; mkfifo pipe; mkdir /made; echo two >/made/file"}`, "")
	var made apitypes.MadeImage
	c.want(http.StatusCreated, &made, http.MethodPost, first+"/commit", `{"name": "tools", "labels": {"of": "a"}}`)
	if made.Name != "tools" || !strings.HasPrefix(made.ID, "sha256:") || made.Size == 0 || made.Created.IsZero() || made.Labels["of"] != "a" || len(made.Skipped) != 1 || !strings.Contains(made.Skipped[0], "pipe") {
		t.Errorf("got %+v, want the image, without the pipe", made)
	}
	c.want(http.StatusNoContent, nil, http.MethodDelete, first, "")
	second, sb := c.create(`{"language": "bash", "image": "project:tools"}`)
	if sb.Image != "project:tools" {
		t.Errorf("the sandbox has the image %q", sb.Image)
	}
	run(c, second+"/run", `{"code": "cat file /made/file; echo more >>file"}`, "one\ntwo\n")
	run(c, "/v1/run", `{"language": "bash", "code": "cat file", "image": "project:tools"}`, "one\n")

	// Another project neither has it, nor finds it by anything.
	b.refused(http.StatusUnprocessableEntity, "image_not_found", http.MethodPost, "/v1/sandboxes", `{"image": "project:tools"}`)
	b.refused(http.StatusUnprocessableEntity, "image_not_found", http.MethodPost, "/v1/run", `{"code": "1", "image": "project:tools"}`)
	b.refused(http.StatusNotFound, "image_not_found", http.MethodDelete, "/v1/images/tools", "")
	b.refused(http.StatusNotFound, "not_found", http.MethodPost, second+"/commit", `{"name": "tools"}`)
	b.refused(http.StatusForbidden, "not_allowed", http.MethodPost, "/v1/sandboxes", `{"image": "`+made.ID+`"}`)
	for _, file := range filesBelow(t, dir) {
		for _, ref := range []string{file, "/../" + file, "docker-archive:" + file} {
			if strings.HasSuffix(file, ".tar") {
				b.refused(http.StatusForbidden, "not_allowed", http.MethodPost, "/v1/sandboxes", `{"image": "`+ref+`"}`)
			}
		}
	}
	if got := names(b); len(got) > 0 {
		t.Errorf("the other project has %v", got)
	}

	// Names, and how many.
	for _, body := range []string{`{"name": ""}`, `{"name": "A"}`, `{"name": "../x"}`, `{"name": "a:b:c"}`, `{"name": "x", "labels": {"llmsandbox.project": "b"}}`} {
		c.refused(http.StatusUnprocessableEntity, "invalid", http.MethodPost, second+"/commit", body)
	}
	for _, image := range []string{"project:", "project:../tools", "project:none", "project:TOOLS"} {
		c.refused(http.StatusUnprocessableEntity, "image_not_found", http.MethodPost, "/v1/sandboxes", `{"image": "`+image+`"}`)
	}
	c.as(keyAReads).refused(http.StatusForbidden, "scope", http.MethodPost, second+"/commit", `{"name": "x"}`)
	c.as(keyAReads).refused(http.StatusForbidden, "scope", http.MethodDelete, "/v1/images/tools", "")
	c.refused(http.StatusConflict, "image_exists", http.MethodPost, second+"/commit", `{"name": "tools"}`)

	// One that sandboxes have is replaced for new ones, and not removed.
	c.refused(http.StatusConflict, "image_in_use", http.MethodDelete, "/v1/images/tools", "")
	run(c, "/v1/run", `{"language": "bash", "code": "cat file", "image": "project:tools"}`, "one\n")
	c.want(http.StatusCreated, nil, http.MethodPost, second+"/commit", `{"name": "tools", "replace": true}`)
	run(c, "/v1/run", `{"language": "bash", "code": "cat file", "image": "project:tools"}`, "one\nmore\n")
	c.refused(http.StatusTooManyRequests, "quota", http.MethodPost, second+"/commit", `{"name": "third"}`) // the sandbox has the one that was replaced
	run(c, second+"/run", `{"code": "cat /made/file"}`, "two\n")
	c.want(http.StatusNoContent, nil, http.MethodDelete, second, "")
	third, _ := c.create(`{"language": "bash"}`)
	c.want(http.StatusCreated, nil, http.MethodPost, third+"/commit", `{"name": "third:1"}`)
	c.refused(http.StatusTooManyRequests, "quota", http.MethodPost, third+"/commit", `{"name": "fourth"}`)
	var q apitypes.Quotas
	c.want(http.StatusOK, &q, http.MethodGet, "/v1/quotas", "")
	if q.Images == nil || *q.Images != (apitypes.Quota{Used: 2, Most: 2}) {
		t.Errorf("got %+v of images, want two of two", q.Images)
	}
	if got := names(c); !slices.Equal(got, []string{"third:1", "tools"}) {
		t.Errorf("there are %v", got)
	}

	// Nothing is left of those that are removed: neither their files, nor what the backend has unpacked.
	run(c, "/v1/run", `{"language": "bash", "code": "true", "image": "project:third:1"}`, "")
	for _, name := range names(c) {
		c.want(http.StatusNoContent, nil, http.MethodDelete, "/v1/images/"+name, "")
	}
	c.refused(http.StatusNotFound, "image_not_found", http.MethodDelete, "/v1/images/tools", "")
	if left := filesBelow(t, dir); len(left) > 0 {
		t.Errorf("%v is left", left)
	}
	unpacked, err := backend.ImageDir()
	if err != nil {
		t.Fatal(err)
	}
	if list, err := ociimage.NewStore(unpacked).List(); err != nil || len(list) > 0 {
		t.Errorf("%+v, %v is left unpacked", list, err)
	}
	for _, part := range []string{"layers", "tmp"} {
		if left := filesBelow(t, filepath.Join(unpacked, part)); len(left) > 0 {
			t.Errorf("%v is left unpacked", left)
		}
	}

	c.stop()
	mu.Lock()
	defer mu.Unlock()
	for _, want := range []AuditEvent{
		{Operation: "commit-sandbox", Outcome: "ok", Detail: "image tools"}, {Operation: "commit-sandbox", Outcome: "image_exists", Detail: "image tools"},
		{Operation: "commit-sandbox", Outcome: "quota", Detail: "image third"}, {Operation: "remove-image", Outcome: "image_in_use", Detail: "image tools"},
		{Operation: "remove-image", Outcome: "ok", Detail: "image tools"}, {Operation: "remove-image", Outcome: "image_not_found", Detail: "image tools"},
	} {
		if !slices.ContainsFunc(events, func(e AuditEvent) bool {
			return e.Operation == want.Operation && e.Outcome == want.Outcome && e.Detail == want.Detail && e.ProjectID != ""
		}) {
			t.Errorf("the audit log has no %+v", want)
		}
	}
}

// TestImagesStay: images are there for the next server.
func TestImagesStay(t *testing.T) {
	t.Setenv("LLMSANDBOX_CACHE_DIR", t.TempDir())
	dir := t.TempDir()
	c := serve(t, Config{MaxImages: 1, ImageDir: dir})
	path, _ := c.create(`{"language": "bash"}`)
	c.want(http.StatusOK, nil, http.MethodPost, path+"/run", `{"code": "echo kept >file"}`)
	c.want(http.StatusCreated, nil, http.MethodPost, path+"/commit", `{"name": "x"}`)
	c.stop()
	c = serve(t, Config{MaxImages: 1, ImageDir: dir})
	var res result
	c.want(http.StatusOK, &res, http.MethodPost, "/v1/run", `{"language": "bash", "code": "cat file", "image": "project:x"}`)
	if res.Stdout != "kept\n" {
		t.Errorf("got %q, %q", res.Stdout, res.Stderr)
	}
	c.want(http.StatusNoContent, nil, http.MethodDelete, "/v1/images/x", "")
}

// TestImagesNotAllowed: without an operator who lets projects have images there are none.
func TestImagesNotAllowed(t *testing.T) {
	c := serve(t, Config{Images: []string{"*"}})
	path, _ := c.create(`{"language": "bash"}`)
	c.refused(http.StatusForbidden, "not_allowed", http.MethodPost, path+"/commit", `{"name": "x"}`)
	c.refused(http.StatusForbidden, "not_allowed", http.MethodPost, "/v1/sandboxes", `{"image": "project:x"}`)
	c.refused(http.StatusForbidden, "not_allowed", http.MethodPost, "/v1/run", `{"code": "1", "image": "project:x"}`)
	c.refused(http.StatusNotFound, "image_not_found", http.MethodDelete, "/v1/images/x", "")
}
