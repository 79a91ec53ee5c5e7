package hostroot

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// A digestTree is a directory that a test changes.
type digestTree struct {
	t   *testing.T
	dir string
}

func (d digestTree) do(errs ...error) {
	d.t.Helper()
	if err := errors.Join(errs...); err != nil {
		d.t.Fatal(err)
	}
}

func (d digestTree) path(name string) string { return filepath.Join(d.dir, name) }

// write writes a file at a fixed time.
func (d digestTree) write(name, text string, mode os.FileMode) {
	d.t.Helper()
	path, at := d.path(name), time.Unix(1e9, 0)
	d.do(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(text), 0o600), os.Chmod(path, mode), os.Chtimes(path, at, at))
}

func (d digestTree) digest(target string) string {
	d.t.Helper()
	all, err := Digests(d.t.Context(), []Bind{{d.dir, target}}, time.Time{})
	d.do(err)
	return all[target]
}

func newDigestTree(t *testing.T) digestTree {
	d := digestTree{t, t.TempDir()}
	d.do(os.Chmod(d.dir, 0o755))
	d.write("bin/tool", "one", 0o755)
	d.write("lib/deep/er/file", "text", 0o644)
	d.do(os.Symlink("tool", d.path("bin/link")), os.Mkdir(d.path("empty"), 0o755))
	return d
}

func TestDigests(t *testing.T) {
	for name, c := range map[string]struct {
		change func(digestTree)
		same   bool // of directories
		etc    bool // the same, of the skeleton
	}{
		"nothing":                 {func(digestTree) {}, true, true},
		"a new file":              {func(d digestTree) { d.write("lib/deep/new", "", 0o644) }, false, false},
		"a new directory":         {func(d digestTree) { d.do(os.Mkdir(d.path("bin/dir"), 0o755)) }, false, false},
		"a removed file":          {func(d digestTree) { d.do(os.Remove(d.path("lib/deep/er/file"))) }, false, false},
		"another name":            {func(d digestTree) { d.do(os.Rename(d.path("bin/tool"), d.path("bin/loot"))) }, false, false},
		"another directory":       {func(d digestTree) { d.do(os.Rename(d.path("empty"), d.path("lib/empty"))) }, false, false},
		"another size":            {func(d digestTree) { d.write("bin/tool", "twofold", 0o755) }, false, false},
		"another time":            {func(d digestTree) { d.do(os.Chtimes(d.path("bin/tool"), time.Time{}, time.Unix(1e9, 1))) }, false, true},
		"another mode":            {func(d digestTree) { d.do(os.Chmod(d.path("bin/tool"), 0o555)) }, false, false},
		"another link":            {func(d digestTree) { d.do(os.Remove(d.path("bin/link")), os.Symlink("loot", d.path("bin/link"))) }, false, false},
		"other contents":          {func(d digestTree) { d.write("bin/tool", "two", 0o755) }, true, false},
		"the time of a directory": {func(d digestTree) { d.do(os.Chtimes(d.path("lib/deep"), time.Time{}, time.Unix(1e9, 1))) }, true, true},
		"a file for root":         {func(d digestTree) { d.write("lib/secret", "", 0o640) }, true, true},
		"a directory for root":    {func(d digestTree) { d.write("lib/closed/f", "", 0o644); d.do(os.Chmod(d.path("lib/closed"), 0o711)) }, true, true},
		"compiled Python":         {func(d digestTree) { d.write("lib/__pycache__/f", "", 0o644) }, true, true},
	} {
		t.Run(name, func(t *testing.T) {
			d := newDigestTree(t)
			was, skeleton := d.digest("/usr"), d.digest("/")
			c.change(d)
			if is := d.digest("/usr"); (is == was) != c.same {
				t.Errorf("%s, was %s", is, was)
			}
			if is := d.digest("/"); (is == skeleton) != c.etc {
				t.Errorf("of the skeleton: %s, was %s", is, skeleton)
			}
		})
	}
	if one, other := newDigestTree(t).digest("/usr"), newDigestTree(t).digest("/usr"); one != other {
		t.Errorf("the same files have the digests %s and %s", one, other)
	}
}

func TestDigestsSince(t *testing.T) {
	for name, change := range map[string]func(digestTree){
		"contents":             func(d digestTree) { d.write("lib/deep/er/file", "TEXT", 0o644) },
		"a removed file":       func(d digestTree) { d.do(os.Remove(d.path("lib/deep/er/file"))) },
		"at the top":           func(d digestTree) { d.do(os.Remove(d.path("empty"))) },
		"new and gone":         func(d digestTree) { d.write("bin/x", "", 0o644); d.do(os.Remove(d.path("bin/x"))) },
		"mode, there and back": func(d digestTree) { d.do(os.Chmod(d.path("bin/tool"), 0o700), os.Chmod(d.path("bin/tool"), 0o755)) },
	} {
		d := newDigestTree(t)
		root := []Bind{{d.dir, "/opt/x"}}
		before, err := Digests(t.Context(), root, time.Now().Add(time.Hour))
		d.do(err)
		if was := d.digest("/opt/x"); before["/opt/x"] != was {
			t.Errorf("%s: %v, want %s", name, before, was)
		}
		begin := time.Now()
		change(d)
		if all, err := Digests(t.Context(), root, begin); !errors.Is(err, ErrChanged) || !strings.HasPrefix(err.Error(), "/opt/x") {
			t.Errorf("%s: %v, %v, want ErrChanged and what", name, all, err)
		}
		if _, err := Digests(t.Context(), []Bind{{d.dir, "/"}}, begin); err != nil {
			t.Errorf("%s, in the skeleton: %v", name, err)
		}
	}
}

func TestDigestsErrors(t *testing.T) {
	if _, err := Digests(t.Context(), []Bind{{"/nonexistent", "/usr"}}, time.Time{}); err == nil || strings.Contains(err.Error(), "nonexistent") {
		t.Errorf("%v, want an error without a path of the host", err)
	}
	d := newDigestTree(t)
	d.do(os.MkdirAll(d.path(strings.Repeat("d/", maxDigestDepth+1)), 0o755))
	if _, err := Digests(t.Context(), []Bind{{d.dir, "/usr"}}, time.Time{}); err == nil || !strings.Contains(err.Error(), "too many") {
		t.Errorf("%v, want an error", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := Digests(ctx, []Bind{{d.dir, "/usr"}}, time.Time{}); !errors.Is(err, context.Canceled) {
		t.Errorf("%v, want context.Canceled", err)
	}
}

func TestDiffering(t *testing.T) {
	got := Differing(map[string]string{"/": "1", "/usr": "1", "/opt/a": "1"}, map[string]string{"/": "1", "/usr": "2", "/opt/b": "1"})
	if want := []string{"/opt/a", "/opt/b", "/usr"}; !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
	if got := Differing(map[string]string{"/opt/a": ""}, nil); len(got) != 1 {
		t.Errorf("%v, want what only one has", got)
	}
}
