//go:build linux

package engine

import (
	"archive/tar"
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/moby/moby/client"

	"github.com/llmsandbox/llmsandbox/backend"
	"github.com/llmsandbox/llmsandbox/internal/engine/image"
	"github.com/llmsandbox/llmsandbox/internal/testimage"
)

// base loads an image to build on.
func base(t *testing.T, s *image.Store) image.Image {
	t.Helper()
	img, err := s.Resolve(t.Context(), testimage.Layout(t, map[string]v1.Image{"a": only(t, nil)}), "", nil)
	if err != nil {
		t.Fatal(err)
	}
	drop(t, s, img)
	return img
}

// everything lists all containers and images of the engine.
func everything(t *testing.T, s *image.Store) (list []string) {
	t.Helper()
	images, err := s.Client.ImageList(t.Context(), client.ImageListOptions{All: true})
	if err != nil {
		t.Fatal(err)
	}
	for _, i := range images.Items {
		list = append(list, i.ID)
	}
	containers, err := s.Client.ContainerList(t.Context(), client.ContainerListOptions{All: true})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range containers.Items {
		list = append(list, c.ID)
	}
	slices.Sort(list)
	return list
}

// filesOf returns the files of an image.
func filesOf(t *testing.T, s *image.Store, id string) map[string]*tar.Header {
	t.Helper()
	c, err := s.Client.ContainerCreate(t.Context(), client.ContainerCreateOptions{Image: id})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Client.ContainerRemove(context.Background(), c.ID, client.ContainerRemoveOptions{})
	r, err := s.Client.ContainerExport(t.Context(), c.ID, client.ContainerExportOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	files := map[string]*tar.Header{}
	for in := tar.NewReader(r); ; {
		h, err := in.Next()
		if errors.Is(err, io.EOF) {
			return files
		}
		if err != nil {
			t.Fatal(err)
		}
		files[strings.Trim(strings.TrimPrefix(h.Name, "./"), "/")] = h
	}
}

func write(t *testing.T, dir string, files map[string]string) {
	t.Helper()
	for name, text := range files {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

func TestImageBuild(t *testing.T) {
	onEngines(t, func(t *testing.T, s *image.Store) {
		from := base(t, s)
		dir := t.TempDir()
		write(t, dir, map[string]string{
			"Dockerfile":    "ARG BASE\nFROM $BASE AS first\nARG WORD\nRUN echo the $WORD >/word\nCOPY . /in/\nUSER 5:6\nFROM first\nENV LATER=yes\n",
			".dockerignore": "*.log\n!keep.log\nsecret\n",
			"a/b.txt":       "b", "x.log": "x", "keep.log": "k", "secret/key": "s",
		})
		if err := os.Symlink("/etc/passwd", filepath.Join(dir, "link")); err != nil {
			t.Fatal(err)
		}
		var log bytes.Buffer
		var steps []backend.Progress
		b := image.Build{
			Context: dir, Target: "first", Args: map[string]string{"BASE": from.Ref, "WORD": "magic word"}, Labels: map[string]string{"mine": "1"},
			Network: "none", Log: &log,
		}
		img, err := s.Build(t.Context(), b, func(p backend.Progress) { steps = append(steps, p) })
		if err != nil {
			t.Fatal(err)
		}
		drop(t, s, img)
		if !img.Made || img.User != "5:6" || slices.Contains(img.Env, "LATER=yes") || !strings.HasPrefix(img.Ref, "llmsandbox-build:") {
			t.Errorf("got %+v, want Made true, User = \"5:6\", Env without \"LATER=yes\", Ref beginning with \"llmsandbox-build:\"", img)
		}
		if last := steps[len(steps)-2]; last.Stage != "build" || last.Total < 5 || !strings.Contains(log.String(), "echo the") {
			t.Errorf("last step %+v, log, want Stage = \"build\", Total >= 5, log containing \"echo the\":\n%s", last, &log)
		}
		if end := steps[len(steps)-1]; end.Stage != "build" || !end.Done || end.Error != "" {
			t.Errorf("the last report is %+v, want Stage = \"build\", Done true, Error empty", end)
		}
		files := filesOf(t, s, img.ID)
		for name, want := range map[string]bool{"word": true, "in/a/b.txt": true, "in/keep.log": true, "in/x.log": false, "in/secret": false,
			"in/secret/key": false, "in/.llmsandbox-dockerfile": false, "in/Dockerfile": true} {
			if (files[name] != nil) != want {
				t.Errorf("%s: %v, want files[name] != nil = %v", name, files[name], want)
			}
		}
		if l := files["in/link"]; l == nil || l.Typeflag != tar.TypeSymlink || l.Linkname != "/etc/passwd" {
			t.Errorf("the link is %+v, want l not nil, Typeflag = TypeSymlink, Linkname = \"/etc/passwd\"", l)
		}
		log.Reset()
		again, err := s.Build(t.Context(), b, nil)
		if err != nil || again.Made || again.ID != img.ID || log.Len() > 0 {
			t.Errorf("again: %+v %v, it printed %q, want no error, Made false, ID = %v, Len <= 0", again, err, &log, img.ID)
		}
		write(t, dir, map[string]string{"a/b.txt": "c"})
		other, err := s.Build(t.Context(), b, nil)
		if err != nil || other.Ref == img.Ref || !other.Made {
			t.Errorf("with another file: %+v %v, want no error, Ref != %v, Made true", other, err, img.Ref)
		}
		drop(t, s, other)
		inspect, err := s.Client.ImageInspect(t.Context(), img.ID)
		if err != nil || inspect.Config.Labels["mine"] != "1" || "llmsandbox-build:"+inspect.Config.Labels[image.LabelBuild] != img.Ref {
			t.Errorf("labels %v %v, want no error, inspect.Config.Labels[\"mine\"] = \"1\", \"llmsandbox-build:\"+inspect.Config.Labels[image.LabelBuild] = %v", inspect.Config.Labels, err, img.Ref)
		}
	})
}

// A failed build tells the step and what was printed, and leaves nothing; what a program
// prints cannot make anything else go.
func TestImageBuildFails(t *testing.T) {
	onEngines(t, func(t *testing.T, s *image.Store) {
		from := base(t, s)
		before := everything(t, s)
		victim := strings.TrimPrefix(from.ID, "sha256:")[:12]
		step := "RUN echo ' ---> " + victim + "'"
		_, err := s.Build(t.Context(), image.Build{
			Content: "FROM " + from.Ref + "\nENV A=" + rand.Text() + "\nRUN echo one >/one\n" +
				step + "; echo '--> " + victim + "'; printf 'the \\033[31mreason'; exit 3\n",
			Network: "none",
		}, nil)
		var failed *image.BuildError
		if !errors.As(err, &failed) || !errors.Is(err, backend.ErrImageInvalid) {
			t.Fatalf("got %v, want an error of type %T, backend.ErrImageInvalid", err, failed)
		}
		if !strings.Contains(failed.Step, step) || !strings.Contains(strings.Join(failed.Last, "\n"), "the reason") || !strings.Contains(failed.Message, "3") {
			t.Errorf("got %q %q %q, want Step containing %q, it to contain \"the reason\", Message containing \"3\"", failed.Step, failed.Message, failed.Last, step)
		}
		if after := everything(t, s); !slices.Equal(before, after) {
			t.Errorf("before: %v\nafter: %v", before, after)
		}
	})
}

// cancelOn cancels when what is printed has a word.
type cancelOn struct {
	word   string
	cancel func()
	seen   string
}

func (c *cancelOn) Write(p []byte) (int, error) {
	if c.seen += string(p); strings.Contains(c.seen, c.word) {
		c.cancel()
	}
	return len(p), nil
}

func TestImageBuildCancelled(t *testing.T) {
	onEngines(t, func(t *testing.T, s *image.Store) {
		if onPodman(t) {
			t.Skip("Podman does not stop the step of a build whose client goes away, and its API has no other way")
		}
		from := base(t, s)
		before := everything(t, s)
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		// The word is put together by the shell: the step's own line does not have it.
		_, err := s.Build(ctx, image.Build{
			Content: "FROM " + from.Ref + "\nENV A=" + rand.Text() + "\nRUN echo one >/one\nRUN echo go''ing on; sleep 1000\n",
			Network: "none", Log: &cancelOn{word: "going on", cancel: cancel},
		}, nil)
		if !errors.Is(err, context.Canceled) {
			t.Fatalf("got %v, want context.Canceled", err)
		}
		if after := everything(t, s); !slices.Equal(before, after) {
			t.Errorf("before: %v\nafter: %v", before, after)
		}
	})
}

func TestImageBuildRefused(t *testing.T) {
	onEngines(t, func(t *testing.T, s *image.Store) {
		dir := t.TempDir()
		write(t, dir, map[string]string{"Dockerfile": "FROM scratch\nCOPY big /\n", "big": strings.Repeat("x", 1000)})
		for text, b := range map[string]image.Build{
			"neither":       {},
			"only one of":   {Content: "FROM x", Dockerfile: "x"},
			"empty":         {Content: " \n"},
			"cannot be":     {Context: t.TempDir()},
			"must be a":     {Context: filepath.Join(dir, "gone")},
			"over 10 bytes": {Context: dir, MaxContext: 10},
			"platform":      {Content: "FROM scratch", Platform: "linux/s390x"},
		} {
			if _, err := s.Build(t.Context(), b, nil); !errors.Is(err, backend.ErrInvalid) || !strings.Contains(err.Error(), text) {
				t.Errorf("%s: %v", text, err)
			}
		}
	})
}
