package images

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/llmsandbox/llmsandbox"
)

func newStore(t *testing.T) *Store {
	t.Helper()
	s, err := New(filepath.Join(t.TempDir(), "images"), t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func anyRoom(int) error { return nil }

// layers begin as a tar does.
var layers = strings.Repeat("\x00", 257) + "ustar\x00"

// commitFile is a commit that makes a file.
func commitFile(file string) (string, error) {
	return "sha256:x", os.WriteFile(file, []byte(layers), 0o600)
}

func unused(string) (bool, error) { return false, nil }

// places are the directories of a project, removed or not.
func places(t *testing.T, s *Store, project string) (all []string) {
	t.Helper()
	entries, err := os.ReadDir(s.project(project))
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if e.IsDir() {
			all = append(all, e.Name())
		}
	}
	return all
}

func TestImages(t *testing.T) {
	ctx, s := t.Context(), newStore(t)
	made, err := s.Make(ctx, "a", Image{Name: "tools:2", Labels: map[string]string{"of": "a"}}, false, anyRoom, commitFile)
	if err != nil || made.ID != "sha256:x" || made.Size != int64(len(layers)) || made.Created.IsZero() {
		t.Fatalf("got %+v, %v", made, err)
	}
	found, file, err := s.Find("a", "tools:2")
	if text, readErr := os.ReadFile(file); err != nil || readErr != nil || string(text) != layers || found.Labels["of"] != "a" || !found.Created.Equal(made.Created) {
		t.Errorf("got %+v, %q, %v, %v", found, text, err, readErr)
	}
	if !s.Has(file) || !s.Has("docker-archive:"+file) || !s.Has(filepath.Dir(file)+"/../"+filepath.Base(filepath.Dir(file))+"/image.tar") || s.Has("registry.example/tools:1") {
		t.Error("files of the store are not told from other images")
	}
	if text := s.Clean("a", "image docker-archive:"+file+": broken"); text != "image of the project: broken" {
		t.Errorf("got %q", text)
	}
	for _, other := range []struct{ project, name string }{{"b", "tools:2"}, {"a", "tools"}, {"a", ""}, {"a", "../a"}, {"a", "lock"}, {"a", found.Name + ".json"}} {
		if _, _, err := s.Find(other.project, other.name); !errors.Is(err, llmsandbox.ErrImageNotFound) {
			t.Errorf("%v: got %v", other, err)
		}
		if err := s.Remove(ctx, other.project, other.name, unused); !errors.Is(err, llmsandbox.ErrImageNotFound) {
			t.Errorf("remove %v: got %v", other, err)
		}
	}
	if _, err := s.Make(ctx, "a", Image{Name: "tools:2"}, false, anyRoom, commitFile); !errors.Is(err, llmsandbox.ErrImageExists) {
		t.Errorf("got %v, want that it exists", err)
	}
	before := places(t, s, "a")
	if _, err := s.Make(ctx, "a", Image{Name: "tools:2"}, true, anyRoom, commitFile); err != nil {
		t.Error(err)
	}
	if after := places(t, s, "a"); len(after) != 1 || after[0] == before[0] {
		t.Errorf("there are %v, want one, and not %v, whose image was replaced", after, before)
	}
	if _, err := s.Make(ctx, "b", Image{Name: "tools:2"}, false, anyRoom, commitFile); err != nil {
		t.Error(err)
	}
	used := func(ref string) (bool, error) { return s.Has(ref), nil }
	if err := s.Remove(ctx, "a", "tools:2", used); !errors.Is(err, llmsandbox.ErrImageInUse) {
		t.Errorf("got %v, want that it is used", err)
	}
	if err := s.Remove(ctx, "a", "tools:2", unused); err != nil {
		t.Error(err)
	}
	if left := places(t, s, "a"); len(left) != 0 {
		t.Errorf("%v is left", left)
	}
	if list, err := s.List("a"); err != nil || len(list) != 0 {
		t.Errorf("got %v, %v, want none", list, err)
	}
	if list, err := s.List("b"); err != nil || len(list) != 1 {
		t.Errorf("got %v, %v, want the other project's to stay", list, err)
	}
	if list, err := s.List("never seen"); err != nil || len(list) != 0 {
		t.Errorf("got %v, %v, want none", list, err)
	}
}

func TestNames(t *testing.T) {
	s := newStore(t)
	long := strings.Repeat("a", 63)
	for _, name := range []string{"a", "a.b_c-d", "a:b", "0:9", long + ":" + long} {
		if _, err := s.Make(t.Context(), "a", Image{Name: name}, false, anyRoom, commitFile); err != nil {
			t.Errorf("%q: %v", name, err)
		}
	}
	for _, name := range []string{"", "A", "-a", ".", "..", "a/b", "a:", ":a", "a:b:c", "a\n", "a\x00", "ä", long + "a", "a:" + long + "a", "a:../b"} {
		if _, err := s.Make(t.Context(), "a", Image{Name: name}, false, anyRoom, commitFile); !errors.Is(err, llmsandbox.ErrInvalid) {
			t.Errorf("%q: got %v, want that it is invalid", name, err)
		}
	}
}

// TestFailedCommit: nothing is left of what was not made, nor of a process that was killed while it made it.
func TestFailedCommit(t *testing.T) {
	s := newStore(t)
	failure := errors.New("failure")
	ctx, cancel := context.WithCancel(t.Context())
	_, err := s.Make(ctx, "a", Image{Name: "x"}, false, anyRoom, func(file string) (string, error) {
		cancel() // its client has gone
		return "", errors.Join(failure, os.WriteFile(file, nil, 0o600))
	})
	if !errors.Is(err, failure) {
		t.Errorf("got %v", err)
	}
	if left := places(t, s, "a"); len(left) != 0 {
		t.Errorf("%v is left", left)
	}
	killed := filepath.Join(s.project("a"), placePrefix+"1")
	if err := errors.Join(os.Mkdir(killed, 0o700), os.WriteFile(filepath.Join(killed, ".image.tar-1"), nil, 0o600)); err != nil {
		t.Fatal(err)
	}
	if err := s.Sweep(t.Context()); err != nil {
		t.Fatal(err)
	}
	if left := places(t, s, "a"); len(left) != 0 {
		t.Errorf("%v is left", left)
	}
	if _, err := s.Make(t.Context(), "a", Image{Name: "x"}, false, anyRoom, commitFile); err != nil {
		t.Fatal(err)
	}
	if left := places(t, s, "a"); len(left) != 1 || slices.Contains(left, filepath.Base(killed)) {
		t.Errorf("there are %v, want the image's alone", left)
	}
}

// TestRoom: those that are being made count, and are not taken for what is left of others.
func TestRoom(t *testing.T) {
	s := newStore(t)
	full := errors.New("full")
	room := func(have int) error {
		if have >= 2 {
			return full
		}
		return nil
	}
	begun, end := make(chan struct{}), make(chan struct{})
	var wait sync.WaitGroup
	wait.Go(func() {
		_, err := s.Make(t.Context(), "a", Image{Name: "slow"}, false, room, func(file string) (string, error) {
			close(begun)
			<-end
			return commitFile(file)
		})
		if err != nil {
			t.Error(err)
		}
	})
	<-begun
	if _, err := s.Make(t.Context(), "a", Image{Name: "x"}, false, room, commitFile); err != nil {
		t.Error(err)
	}
	if _, err := s.Make(t.Context(), "a", Image{Name: "y"}, false, room, commitFile); !errors.Is(err, full) {
		t.Errorf("got %v, want that there is no room", err)
	}
	if _, err := s.Make(t.Context(), "a", Image{Name: "x"}, true, room, commitFile); err != nil {
		t.Errorf("replace one: %v", err)
	}
	if _, err := s.Make(t.Context(), "b", Image{Name: "y"}, false, room, commitFile); err != nil {
		t.Error(err)
	}
	close(end)
	wait.Wait()
	if list, err := s.List("a"); err != nil || len(list) != 2 {
		t.Errorf("got %v, %v, want both", list, err)
	}
}

// TestScratch: such a file is nobody else's, and nothing is left of it.
func TestScratch(t *testing.T) {
	s := newStore(t)
	f, err := s.Scratch("a")
	if err != nil {
		t.Fatal(err)
	}
	if entries, err := os.ReadDir(s.project("a")); err != nil || len(entries) > 0 {
		t.Errorf("there is %v, %v, want nothing", entries, err)
	}
	if _, err := f.WriteString("x"); err != nil {
		t.Error(err)
	}
	if err := s.Sweep(t.Context()); err != nil {
		t.Error(err)
	}
	if err := f.Close(); err != nil {
		t.Error(err)
	}
}
