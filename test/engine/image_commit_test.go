//go:build linux

package engine

import (
	"archive/tar"
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/moby/moby/api/types/container"
	"github.com/moby/moby/client"

	"github.com/llmsandbox/llmsandbox/backend"
	"github.com/llmsandbox/llmsandbox/internal/engine/image"
	"github.com/llmsandbox/llmsandbox/internal/ociimage"
	"github.com/llmsandbox/llmsandbox/internal/testimage"
	"github.com/llmsandbox/llmsandbox/internal/testtar"
)

// richBase loads an image with a configuration that has something of everything.
func richBase(t *testing.T, s *image.Store) image.Image {
	t.Helper()
	img, err := s.Resolve(t.Context(), testimage.Layout(t, map[string]v1.Image{"a": only(t, func(c *v1.Config) {
		c.Env = append(c.Env, `QUOTES="a" $b \c 'd'`)
		c.Entrypoint, c.Cmd, c.User = []string{"/bin/echo"}, []string{"a b", "$c"}, "1000:1000"
		c.ExposedPorts, c.StopSignal = map[string]struct{}{"80/tcp": {}}, "SIGINT"
	})}), "", nil)
	if err != nil {
		t.Fatal(err)
	}
	drop(t, s, img)
	return img
}

// sameConfig compares what a container of either image would be like.
func sameConfig(t *testing.T, s *image.Store, a, b image.Image) {
	t.Helper()
	x, err := s.Client.ImageInspect(t.Context(), a.ID)
	if err != nil {
		t.Fatal(err)
	}
	y, err := s.Client.ImageInspect(t.Context(), b.ID)
	if err != nil {
		t.Fatal(err)
	}
	// Podman gives these to every container, and so to what is made of one.
	y.Config.Env = slices.DeleteFunc(y.Config.Env, func(v string) bool { return v == "TERM=xterm" || v == "container=podman" })
	slices.Sort(x.Config.Env)
	slices.Sort(y.Config.Env)
	for name, pair := range map[string][2]any{
		"Env": {x.Config.Env, y.Config.Env}, "User": {x.Config.User, y.Config.User}, "Cmd": {x.Config.Cmd, y.Config.Cmd},
		"Entrypoint": {x.Config.Entrypoint, y.Config.Entrypoint}, "WorkingDir": {x.Config.WorkingDir, y.Config.WorkingDir},
		"Labels": {x.Config.Labels, y.Config.Labels}, "ExposedPorts": {x.Config.ExposedPorts, y.Config.ExposedPorts},
		"StopSignal": {x.Config.StopSignal, y.Config.StopSignal},
	} {
		if name == "StopSignal" && onPodman(t) {
			continue // see image.Commit
		}
		if !reflect.DeepEqual(pair[0], pair[1]) {
			t.Errorf("%s was %v and is %v", name, pair[0], pair[1])
		}
	}
}

// A committed image has the container's files, and of its configuration nothing: not the
// secret in its environment, wherever an engine may keep it.
func TestImageCommit(t *testing.T) {
	onEngines(t, func(t *testing.T, s *image.Store) {
		from := richBase(t, s)
		made, err := s.Client.ContainerCreate(t.Context(), client.ContainerCreateOptions{Config: &container.Config{
			Image: from.ID, Env: []string{"LLMSANDBOX_TOKEN=hush-hush"}, Labels: map[string]string{"llmsandbox.id": "x"},
			Entrypoint: []string{"/bin/sh", "-c", "echo new >/new && rm /bin/wc"}, User: "0",
		}, HostConfig: &container.HostConfig{NetworkMode: "none"}})
		if err != nil {
			t.Fatal(err)
		}
		defer s.Client.ContainerRemove(context.Background(), made.ID, client.ContainerRemoveOptions{Force: true})
		end := s.Client.ContainerWait(t.Context(), made.ID, client.ContainerWaitOptions{Condition: container.WaitConditionNextExit})
		if _, err := s.Client.ContainerStart(t.Context(), made.ID, client.ContainerStartOptions{}); err != nil {
			t.Fatal(err)
		}
		select {
		case r := <-end.Result:
			if r.StatusCode != 0 {
				t.Fatalf("the container ended with %+v, want StatusCode = 0", r)
			}
		case err := <-end.Error:
			t.Fatal(err)
		}
		tag := "h-commit:" + strings.ToLower(rand.Text())
		img, err := s.Commit(t.Context(), made.ID, image.Commit{Tag: tag, Base: from})
		if err != nil {
			t.Fatal(err)
		}
		drop(t, s, img)
		if img.Ref != tag || !img.Made || img.User != "1000:1000" {
			t.Errorf("got %+v, want Ref = %v, Made true, User = \"1000:1000\"", img, tag)
		}
		sameConfig(t, s, from, img)
		var raw bytes.Buffer
		if _, err := s.Client.ImageInspect(t.Context(), img.ID, client.ImageInspectWithRawResponse(&raw)); err != nil {
			t.Fatal(err)
		}
		saved, err := s.Client.ImageSave(t.Context(), []string{img.ID})
		if err != nil {
			t.Fatal(err)
		}
		defer saved.Close()
		if _, err := raw.ReadFrom(saved); err != nil {
			t.Fatal(err)
		}
		if bytes.Contains(raw.Bytes(), []byte("hush-hush")) || bytes.Contains(raw.Bytes(), []byte("llmsandbox.id")) {
			t.Errorf("the image's configuration is %s, want none of the container's environment and labels", raw.Bytes())
		}
		files := filesOf(t, s, img.ID)
		if files["new"] == nil || files["bin/wc"] != nil || files["bin/sh"] == nil {
			t.Errorf("/new is %v, /bin/wc is %v, /bin/sh is %v, want files[\"new\"] != nil, files[\"bin/wc\"] = nil, files[\"bin/sh\"] != nil", files["new"], files["bin/wc"], files["bin/sh"])
		}
		if _, err := s.Commit(t.Context(), made.ID, image.Commit{Tag: tag, Base: from}); !errors.Is(err, backend.ErrInvalid) || !strings.Contains(err.Error(), "exists") {
			t.Errorf("to a tag that exists: %v, want backend.ErrInvalid, an error containing \"exists\"", err)
		}
		if _, err := s.Commit(t.Context(), made.ID, image.Commit{Tag: tag, Overwrite: "other:1", Base: from}); !errors.Is(err, backend.ErrInvalid) {
			t.Errorf("overwriting another: %v, want backend.ErrInvalid", err)
		}
	})
}

// The image of a local sandbox is one for engines too, with the same id.
func TestImageOfLocal(t *testing.T) {
	store := ociimage.NewStore(t.TempDir())
	base, err := store.Resolve(t.Context(), testimage.Layout(t, map[string]v1.Image{"a": only(t, nil)}), ociimage.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer base.Release()
	layer, err := ociimage.NewLayer(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer layer.Close()
	layer.Deletions = true
	if err := layer.Add(t.Context(), bytes.NewReader(testtar.Archive(t, testtar.File("etc/new", "new", 0o644),
		testtar.Member{Header: tar.Header{Typeflag: tar.TypeChar, Name: "bin/wc"}}, testtar.File("sandbox/f", "file", 0o644))), "/"); err != nil {
		t.Fatal(err)
	}
	from, err := store.Outside(t.Context(), ociimage.Origin{Name: base.Name, Digest: base.Digest, ID: base.ID})
	if err != nil {
		t.Fatal(err)
	}
	defer from.Close()
	var b bytes.Buffer
	id, err := from.WriteWith(t.Context(), &b, layer, "/sandbox")
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "image.tar")
	if err := os.WriteFile(path, b.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	onEngines(t, func(t *testing.T, s *image.Store) {
		img, err := s.Resolve(t.Context(), path, "", nil)
		if err != nil {
			t.Fatal(err)
		}
		drop(t, s, img)
		files := filesOf(t, s, img.ID)
		if img.ID != id.String() || img.Committed != "/sandbox" || files["etc/new"] == nil || files["sandbox/f"] == nil || files["bin/wc"] != nil || files["bin/sh"] == nil {
			t.Errorf("%+v has %d files, want the id %s, the base's, the new ones and not the removed one", img, len(files), id)
		}
	})
}

func TestImageCommitFiles(t *testing.T) {
	onEngines(t, func(t *testing.T, s *image.Store) {
		from := richBase(t, s)
		before := everything(t, s)
		archive := func(list ...tar.Header) *bytes.Reader {
			return bytes.NewReader(testtar.Archive(t, testtar.Filled("abc", list...)...))
		}
		for what, list := range map[string][]tar.Header{
			"not below":       {{Typeflag: tar.TypeReg, Name: "etc/passwd"}},
			"has .. in":       {{Typeflag: tar.TypeReg, Name: "sandbox/../etc/passwd"}},
			"no directory":    {{Typeflag: tar.TypeSymlink, Name: "sandbox/l", Linkname: "/etc"}, {Typeflag: tar.TypeReg, Name: "sandbox/l/passwd"}},
			"not a directory": {{Typeflag: tar.TypeSymlink, Name: "sandbox", Linkname: "/etc"}},
			"there twice":     {{Typeflag: tar.TypeSymlink, Name: "sandbox/l", Linkname: "/etc/passwd"}, {Typeflag: tar.TypeReg, Name: "sandbox/l"}},
			"does not mean": {{Typeflag: tar.TypeSymlink, Name: "sandbox/l", Linkname: "/etc/passwd"},
				{Typeflag: tar.TypeLink, Name: "sandbox/h", Linkname: "sandbox/l"}},
		} {
			_, _, err := s.CommitFiles(t.Context(), archive(list...), "/sandbox", 1000, 1000, image.Commit{Tag: "h-files:" + strings.ToLower(rand.Text()), Base: from})
			if !errors.Is(err, backend.ErrImageInvalid) || !strings.Contains(err.Error(), what) {
				t.Errorf("%s: %v", what, err)
			}
		}
		if after := everything(t, s); !slices.Equal(before, after) {
			t.Errorf("before: %v\nafter: %v", before, after)
		}
		tag := "h-files:" + strings.ToLower(rand.Text())
		img, _, err := s.CommitFiles(t.Context(), archive(
			tar.Header{Typeflag: tar.TypeDir, Name: "sandbox/", Mode: 0o755},
			tar.Header{Typeflag: tar.TypeReg, Name: "sandbox/d/f", Mode: 0o4755},
			tar.Header{Typeflag: tar.TypeLink, Name: "sandbox/h", Linkname: "sandbox/d/f"},
			tar.Header{Typeflag: tar.TypeSymlink, Name: "sandbox/l", Linkname: "d/f"},
			tar.Header{Typeflag: tar.TypeFifo, Name: "sandbox/p"},
		), "/sandbox", 1000, 1000, image.Commit{Tag: tag, Base: from})
		if err != nil {
			t.Fatal(err)
		}
		drop(t, s, img)
		sameConfig(t, s, from, img)
		files := filesOf(t, s, img.ID)
		if f := files["sandbox/d/f"]; f == nil || f.Uid != 1000 || f.Gid != 1000 || f.Mode&0o7777 != 0o755 || f.Size != 3 {
			t.Errorf("the file is %+v, want f not nil, Uid = 1000, Gid = 1000, f.Mode&0o7777 = 0o755, Size = 3", f)
		}
		if files["sandbox/h"] == nil || files["sandbox/l"] == nil || files["sandbox/p"] != nil || files["bin/sh"] == nil {
			t.Error("files lack, or there are some too many")
		}
	})
}
