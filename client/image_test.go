package client_test

import (
	"errors"
	"testing"

	"github.com/llmsandbox/llmsandbox"
	"github.com/llmsandbox/llmsandbox/client"
	"github.com/llmsandbox/llmsandbox/httpapi"
)

// TestImages: an image of a sandbox is what another begins with.
func TestImages(t *testing.T) {
	t.Setenv("LLMSANDBOX_CACHE_DIR", t.TempDir())
	ctx := testContext(t)
	c := connect(t, serve(t, httpapi.Config{MaxImages: 2, ImageDir: t.TempDir()}), key, client.Options{})
	sb, err := c.Open(ctx, &llmsandbox.Options{Language: "bash"})
	if err != nil {
		t.Fatal(err)
	}
	defer sb.Close()
	if res, err := sb.Run(ctx, "echo one >file; mkfifo pipe", nil); err != nil || !res.OK() {
		t.Fatalf("%+v, %v", res, err)
	}
	made, err := sb.Commit(ctx, "tools:1", nil)
	if err != nil || made.ID == "" || len(made.Skipped) != 1 {
		t.Fatalf("got %+v, %v", made, err)
	}
	list, err := c.ListImages(ctx)
	if err != nil || len(list) != 1 || list[0].Name != "tools:1" || list[0].ID != made.ID || list[0].Created.IsZero() || list[0].Size == 0 {
		t.Errorf("list: %+v, %v, want the image", list, err)
	}
	if _, err := sb.Commit(ctx, "tools:1", nil); !errors.Is(err, llmsandbox.ErrImageExists) {
		t.Errorf("got %v, want that there is one", err)
	}
	for _, tag := range []string{"", "A", "../x"} {
		if _, err := sb.Commit(ctx, tag, nil); !errors.Is(err, llmsandbox.ErrInvalid) {
			t.Errorf("tag %q: got %v, want that it is invalid", tag, err)
		}
	}
	if _, err := sb.Commit(ctx, "tools:1", &llmsandbox.CommitOptions{Overwrite: "tools:2"}); !errors.Is(err, llmsandbox.ErrInvalid) {
		t.Errorf("got %v, want that another tag is not overwritten", err)
	}
	if _, err := sb.Commit(ctx, "tools:1", &llmsandbox.CommitOptions{Overwrite: "tools:1"}); err != nil {
		t.Errorf("overwrite: %v", err)
	}
	second, err := c.Open(ctx, &llmsandbox.Options{Language: "bash", Image: client.OwnImage + "tools:1"})
	if err != nil {
		t.Fatal(err)
	}
	if text, err := second.ReadFile(ctx, "file"); err != nil || string(text) != "one\n" {
		t.Errorf("got %q, %v", text, err)
	}
	if err := c.RemoveImage(ctx, "tools:1"); !errors.Is(err, llmsandbox.ErrImageInUse) {
		t.Errorf("got %v, want that it is used", err)
	}
	if err := second.Close(); err != nil {
		t.Error(err)
	}
	if q, err := c.Quotas(ctx); err != nil || q.Images != (client.Quota{Used: 1, Most: 2}) {
		t.Errorf("got %+v, %v", q.Images, err)
	}
	if err := c.RemoveImage(ctx, "tools:1"); err != nil {
		t.Error(err)
	}
	for _, name := range []string{"tools:1", "", "..", "a/b", "A"} {
		if err := c.RemoveImage(ctx, name); !errors.Is(err, llmsandbox.ErrImageNotFound) {
			t.Errorf("remove %q: got %v, want that there is none", name, err)
		}
	}
	if _, err := c.Open(ctx, &llmsandbox.Options{Image: client.OwnImage + "tools:1"}); !errors.Is(err, llmsandbox.ErrImageNotFound) {
		t.Errorf("got %v, want that there is none", err)
	}
}
