package ociimage

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	v1 "github.com/google/go-containerregistry/pkg/v1"

	"github.com/llmsandbox/llmsandbox/backend"
)

func TestRemoveAndPrune(t *testing.T) {
	host := serve(t, nil)
	base := layerOf(t, file("base", "12345"))
	push(t, host+"/a", imageOf(t, v1.Config{}, base, layerOf(t, file("a", "a"))))
	push(t, host+"/b", imageOf(t, v1.Config{}, base, layerOf(t, file("b", "b"))))
	s := newStore(t)
	if list, err := s.List(); err != nil || len(list) != 0 {
		t.Errorf("an empty store: %v %v, want no error, no list", list, err)
	}
	if _, err := s.Prune(t.Context(), true); err != nil {
		t.Errorf("prune an empty store: %v", err)
	}
	a := resolve(t, s, host+"/a", Options{})
	b := resolve(t, s, host+"/b", Options{})
	again := resolve(t, s, a.ID, Options{})
	b.Release()

	info, err := s.Inspect(host + "/a")
	if err != nil || !info.InUse || info.ID != a.ID || info.Size != 6 || len(info.Layers) != 2 || info.Names[0] != a.Name {
		t.Errorf("inspect: %+v %v, want no error, InUse true, ID = %v, Size = 6, len(info.Layers) = 2, info.Names[0] = %v", info, err, a.ID, a.Name)
	}
	if info, err := s.Inspect(b.ID[7:17]); err != nil || info.InUse {
		t.Errorf("inspect b by its id: %+v %v, want no error, InUse false", info, err)
	}
	if _, err := s.Remove(host + "/a"); !errors.Is(err, backend.ErrLocked) {
		t.Errorf("remove an image in use: %v, want backend.ErrLocked", err)
	}
	out, err := s.Prune(t.Context(), true)
	if err != nil || len(out.Images) != 1 || out.Images[0] != b.ID || out.Layers != 1 || out.Bytes != 1 || len(out.InUse) != 1 {
		t.Errorf("prune: %+v %v, want no error, len(out.Images) = 1, out.Images[0] = %v, Layers = 1, Bytes = 1, len(out.InUse) = 1", out, err, b.ID)
	}
	if read(t, a.Layers[0], "base") != "12345" {
		t.Errorf("a layer in use has %q, want \"12345\"", read(t, a.Layers[0], "base"))
	}
	if _, err := s.Resolve(t.Context(), b.ID, Options{}); !errors.Is(err, backend.ErrImageNotFound) {
		t.Errorf("resolve what was removed: %v, want backend.ErrImageNotFound", err)
	}
	a.Release()
	if _, err := s.Remove(host + "/a"); !errors.Is(err, backend.ErrLocked) {
		t.Errorf("remove an image held twice: %v, want backend.ErrLocked", err)
	}
	again.Release()
	if out, err = s.Remove(host + "/a"); err != nil || out.Layers != 2 {
		t.Errorf("remove: %+v %v, want no error, Layers = 2", out, err)
	}
	if _, err := s.Remove(host + "/a"); !errors.Is(err, backend.ErrImageNotFound) {
		t.Errorf("remove again: %v, want backend.ErrImageNotFound", err)
	}
	for _, d := range []string{"images", "refs", "layers", "tmp", "locks"} {
		if left, _ := os.ReadDir(s.path(d)); len(left) != 0 {
			t.Errorf("%s has %v, want none", d, left)
		}
	}
	resolve(t, s, host+"/a", Options{}) // and it can be fetched again
}

func TestPruneNamelessAndLeftovers(t *testing.T) {
	host := serve(t, nil)
	push(t, host+"/x", imageOf(t, v1.Config{}, layerOf(t, file("a", "old"))))
	s := newStore(t)
	old := resolve(t, s, host+"/x", Options{})
	old.Release()
	push(t, host+"/x", imageOf(t, v1.Config{}, layerOf(t, file("a", "new"))))
	img, err := s.Pull(t.Context(), host+"/x", Options{})
	if err != nil {
		t.Fatal(err)
	}
	img.Release()
	dead := s.path("tmp", "layer-dead", "fs")
	if err := os.MkdirAll(dead, 0o700); err != nil {
		t.Fatal(err)
	}
	unlock, err := s.lockPull(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(dead); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the next pull does not clear what a dead one left: %v, want fs.ErrNotExist", err)
	}
	if _, err := s.Prune(t.Context(), false); !errors.Is(err, backend.ErrLocked) {
		t.Errorf("prune during a pull: %v, want backend.ErrLocked", err)
	}
	if _, err := s.Remove(host + "/x"); !errors.Is(err, backend.ErrLocked) {
		t.Errorf("remove during a pull: %v, want backend.ErrLocked", err)
	}
	unlock()
	if err := os.MkdirAll(dead, 0o700); err != nil {
		t.Fatal(err)
	}
	out, err := s.Prune(t.Context(), false)
	if err != nil || len(out.Images) != 1 || out.Images[0] != old.ID || out.Layers != 1 || out.Temp != 1 {
		t.Errorf("prune: %+v %v, want no error, len(out.Images) = 1, out.Images[0] = %v, Layers = 1, Temp = 1", out, err, old.ID)
	}
	if list, err := s.List(); err != nil || len(list) != 1 || list[0].ID != img.ID {
		t.Errorf("list: %+v %v, want no error, len(list) = 1, ID = %v", list, err, img.ID)
	}
}

// A layer directory that was removed by hand is fetched again.
func TestLayerLost(t *testing.T) {
	host := serve(t, nil)
	push(t, host+"/x", imageOf(t, v1.Config{}, layerOf(t, file("a", "1"))))
	s := newStore(t)
	img := resolve(t, s, host+"/x", Options{})
	if err := os.RemoveAll(filepath.Dir(img.Layers[0])); err != nil {
		t.Fatal(err)
	}
	if got := read(t, resolve(t, s, host+"/x", Options{}).Layers[0], "a"); got != "1" {
		t.Errorf("got %q, want \"1\"", got)
	}
}

// A pull that waits for a removal elsewhere can be given up.
func TestPullWaitsForRemoval(t *testing.T) {
	host := serve(t, nil)
	push(t, host+"/x", imageOf(t, v1.Config{}, layerOf(t, file("a", "1"))))
	s := newStore(t)
	unlock, err := s.lockRemove()
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(errors.New("enough"))
	if _, err := s.Resolve(ctx, host+"/x", Options{}); err == nil || !strings.Contains(err.Error(), "enough") {
		t.Errorf("got %v, want an error containing \"enough\"", err)
	}
	done := make(chan error, 1)
	go func() {
		img, err := s.Resolve(t.Context(), host+"/x", Options{})
		if err == nil {
			img.Release()
		}
		done <- err
	}()
	unlock()
	if err := <-done; err != nil {
		t.Error(err)
	}
}
