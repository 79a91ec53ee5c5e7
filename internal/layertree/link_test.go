//go:build unix

package layertree

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/llmsandbox/llmsandbox/internal/tarcheck"
)

// tree makes a directory. Names that end in a slash are directories, texts that begin with "-> " are
// links, those that begin with "! " are of programs.
func tree(t *testing.T, members map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range members {
		path := filepath.Join(dir, name)
		err := os.MkdirAll(filepath.Dir(path), 0o755)
		if target, ok := strings.CutPrefix(text, "-> "); err == nil && ok {
			err = os.Symlink(target, path)
		} else if strings.HasSuffix(name, "/") {
			err = errors.Join(err, os.MkdirAll(path, 0o755))
		} else if err == nil {
			mode := os.FileMode(0o644)
			if strings.HasPrefix(text, "! ") {
				mode = 0o755
			}
			err = os.WriteFile(path, []byte(text), mode)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func TestLink(t *testing.T) {
	long := strings.Repeat("x", 100<<10)
	for name, c := range map[string]struct {
		one, two map[string]string
		conflict bool
	}{
		"apart":                   {one: map[string]string{"a/b/c": "1", "empty/": ""}, two: map[string]string{"a/b/d": "! 2", "a/e/f": "3", "l": "-> ../a"}},
		"the same":                {one: map[string]string{"a": long, "l": "-> a", "d/": ""}, two: map[string]string{"a": long, "l": "-> a", "d/": ""}},
		"another text":            {one: map[string]string{"a": long + "1"}, two: map[string]string{"a": long + "2"}, conflict: true},
		"another length":          {one: map[string]string{"a": "1"}, two: map[string]string{"a": "11"}, conflict: true},
		"a program":               {one: map[string]string{"a": "! 1"}, two: map[string]string{"a": "  1"}, conflict: true},
		"another target":          {one: map[string]string{"l": "-> a"}, two: map[string]string{"l": "-> b"}, conflict: true},
		"a file and a directory":  {one: map[string]string{"a": "1"}, two: map[string]string{"a/b": "1"}, conflict: true},
		"a directory and a file":  {one: map[string]string{"a/b": "1"}, two: map[string]string{"a": "1"}, conflict: true},
		"a link and a directory":  {one: map[string]string{"a": "-> OUTSIDE"}, two: map[string]string{"a/canary": "1"}, conflict: true},
		"a directory and a link":  {one: map[string]string{"a/canary": "1"}, two: map[string]string{"a": "-> OUTSIDE"}, conflict: true},
		"a link to the directory": {one: map[string]string{"a": "-> ."}, two: map[string]string{"a/canary": "1"}, conflict: true},
	} {
		t.Run(name, func(t *testing.T) {
			outside, dir := t.TempDir(), t.TempDir()
			for _, members := range []map[string]string{c.one, c.two} {
				for name, text := range members {
					members[name] = strings.ReplaceAll(text, "OUTSIDE", outside)
				}
			}
			one, two := tree(t, c.one), tree(t, c.two)
			err := Link(t.Context(), dir, Options{MaxFiles: 100}, one, two)
			if errors.Is(err, ErrConflict) != c.conflict || (err != nil) != c.conflict {
				t.Fatalf("%v, want ErrConflict: %v", err, c.conflict)
			}
			if entries, err := os.ReadDir(outside); err != nil || len(entries) != 0 {
				t.Errorf("outside: %v, %v, want nothing", entries, err)
			}
			if c.conflict {
				return
			}
			for from, members := range map[string]map[string]string{one: c.one, two: c.two} {
				for name := range members {
					want, err := os.Lstat(filepath.Join(from, name))
					if err != nil {
						t.Fatal(err)
					}
					got, err := os.Lstat(filepath.Join(dir, name))
					if err != nil || got.Mode() != want.Mode() || got.Size() != want.Size() && !got.IsDir() {
						t.Errorf("%s: %v, %v, want %v", name, got, err, want)
					}
				}
			}
		})
	}
	t.Run("what differs is named", func(t *testing.T) {
		err := Link(t.Context(), t.TempDir(), Options{}, tree(t, map[string]string{"a/b/c": "1"}), tree(t, map[string]string{"a/b/c": "2"}))
		if err == nil || !strings.HasPrefix(err.Error(), "a/b/c is in two packages") {
			t.Errorf("%v, want \"a/b/c is in two packages\"", err)
		}
	})
	t.Run("files are not copied", func(t *testing.T) {
		from, dir := tree(t, map[string]string{"a/b": "1"}), t.TempDir()
		if err := Link(t.Context(), dir, Options{}, from); err != nil {
			t.Fatal(err)
		}
		a, aerr := os.Stat(filepath.Join(from, "a/b"))
		b, berr := os.Stat(filepath.Join(dir, "a/b"))
		if aerr != nil || berr != nil || !os.SameFile(a, b) {
			t.Errorf("%v, %v, %v, %v, want one file", a, aerr, b, berr)
		}
	})
	t.Run("too much", func(t *testing.T) {
		for o, large := range map[Options]bool{{MaxFiles: 2}: true, {MaxBytes: 5}: true, {MaxFiles: 3, MaxBytes: 6}: false, {}: false} {
			err := Link(t.Context(), t.TempDir(), o, tree(t, map[string]string{"a": "12", "b": "34"}), tree(t, map[string]string{"c": "56"}))
			if errors.Is(err, tarcheck.ErrTooLarge) != large || (err != nil) != large {
				t.Errorf("%+v: %v, want tarcheck.ErrTooLarge: %v", o, err, large)
			}
		}
	})
	t.Run("given up", func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if err := Link(ctx, t.TempDir(), Options{}, tree(t, map[string]string{"a": ""})); !errors.Is(err, context.Canceled) {
			t.Errorf("got %v, want context.Canceled", err)
		}
	})
}
