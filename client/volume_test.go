package client_test

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/llmsandbox/llmsandbox"
	"github.com/llmsandbox/llmsandbox/client"
	"github.com/llmsandbox/llmsandbox/httpapi"
)

// TestVolumes: the calls do what those of the library do.
func TestVolumes(t *testing.T) {
	ctx := testContext(t)
	c := connect(t, serve(t, httpapi.Config{MaxVolumes: 2}), key, client.Options{})
	made, err := c.CreateVolume(ctx, llmsandbox.Volume{Name: "kept", Labels: map[string]string{"of": "test"}})
	if err != nil || made.Name != "kept" || made.Created.IsZero() {
		t.Fatalf("create: %+v, %v", made, err)
	}
	if list, err := c.ListVolumes(ctx); err != nil || len(list) != 1 || list[0].Labels["of"] != "test" || !list[0].Created.Equal(made.Created) {
		t.Errorf("list: %+v, %v, want the volume", list, err)
	}
	out := t.TempDir()
	if r, err := c.CopyFromVolume(ctx, "kept", "/", out); err != nil || r.Files != 0 {
		t.Errorf("copy an empty volume: %+v, %v", r, err)
	}
	at := []llmsandbox.VolumeMount{{Name: "kept", Target: "/sandbox/kept"}}
	sb, err := c.Open(ctx, &llmsandbox.Options{Language: "bash", Volumes: at})
	if err != nil {
		t.Fatal(err)
	}
	defer sb.Close()
	if res, err := sb.Run(ctx, "echo one >kept/file; mkdir -p kept/deep/empty; ln -s / kept/link", nil); err != nil || !res.OK() {
		t.Fatalf("%+v, %v", res, err)
	}
	if list, err := c.List(ctx, nil); err != nil || len(list) != 1 || len(list[0].Volumes) != 1 || list[0].Volumes[0] != at[0] {
		t.Errorf("list: %+v, %v, want the sandbox with its volume", list, err)
	}
	if res, err := c.Run(ctx, "cat kept/file", &llmsandbox.Options{Language: "bash", Volumes: at}); err != nil || res.Stdout != "one\n" {
		t.Errorf("run: %+v, %v", res, err)
	}

	in := filepath.Join(t.TempDir(), "in")
	if err := errors.Join(os.Mkdir(in, 0o755), os.WriteFile(filepath.Join(in, "a"), []byte("a"), 0o644)); err != nil {
		t.Fatal(err)
	}
	for _, copied := range []struct{ from, to string }{{in, "dir"}, {filepath.Join(in, "a"), "/new/name"}, {filepath.Join(in, "a"), "/deep"}} {
		if r, err := c.CopyToVolume(ctx, copied.from, "kept", copied.to); err != nil || r.Files != 1 {
			t.Errorf("copy to %s: %+v, %v", copied.to, r, err)
		}
	}
	if r, err := c.CopyFromVolume(ctx, "kept", "/", out); err != nil || r.Files != 4 || len(r.Skipped) != 1 {
		t.Errorf("copy out: %+v, %v, want four files without the link", r, err)
	}
	if r, err := c.CopyFromVolume(ctx, "kept", "file", filepath.Join(out, "renamed")); err != nil || r.Files != 1 {
		t.Errorf("copy a file out: %+v, %v", r, err)
	}
	for name, want := range map[string]string{"kept/file": "one\n", "kept/dir/a": "a", "kept/new/name": "a", "kept/deep/a": "a", "renamed": "one\n"} {
		if text, err := os.ReadFile(filepath.Join(out, name)); err != nil || string(text) != want {
			t.Errorf("%s: got %q, %v, want %q", name, text, err, want)
		}
	}
	var archive bytes.Buffer
	if r, err := c.TarFromVolume(ctx, "kept", "dir", "x", &archive); err != nil || r.Files != 0 && r.Files != 1 {
		t.Errorf("archive: %+v, %v", r, err)
	}
	if r, err := c.TarToVolume(ctx, &archive, "kept", "again"); err != nil || r.Files != 1 {
		t.Errorf("unpack: %+v, %v", r, err)
	}
	if text, err := sb.ReadFile(ctx, "kept/again/x/a"); err != nil || string(text) != "a" {
		t.Errorf("what was unpacked is %q, %v", text, err)
	}

	_, exists := c.CreateVolume(ctx, llmsandbox.Volume{Name: "kept"})
	_, size := c.CreateVolume(ctx, llmsandbox.Volume{Name: "x", Size: 1 << 20})
	_, missing := c.CopyFromVolume(ctx, "none", "/", out)
	_, noFile := c.CopyFromVolume(ctx, "kept", "none", out)
	_, unsafe := c.CopyFromVolume(ctx, "kept", "../x", out)
	_, name := c.CopyToVolume(ctx, in, "Kept", "/")
	for call, err := range map[string]struct{ got, want error }{
		"create again": {exists, llmsandbox.ErrVolumeExists}, "create with a size": {size, llmsandbox.ErrNotEnforced}, "remove in use": {c.RemoveVolume(ctx, "kept", false), llmsandbox.ErrVolumeInUse},
		"copy of none": {missing, llmsandbox.ErrVolumeNotFound}, "copy of no file": {noFile, fs.ErrNotExist}, "copy of what is above": {unsafe, llmsandbox.ErrUnsafePath},
		"copy to no name": {name, llmsandbox.ErrInvalid}, "remove none": {c.RemoveVolume(ctx, "none", true), llmsandbox.ErrVolumeNotFound},
	} {
		if !errors.Is(err.got, err.want) {
			t.Errorf("%s: %v, want %v", call, err.got, err.want)
		}
	}
	if err := errors.Join(sb.Close(), c.RemoveVolume(ctx, "kept", false)); err != nil {
		t.Error(err)
	}
}
