package image

import (
	"archive/tar"
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func names(t *testing.T, r io.Reader) string {
	t.Helper()
	var list []string
	for in := tar.NewReader(r); ; {
		h, err := in.Next()
		if errors.Is(err, io.EOF) {
			return strings.Join(list, " ")
		}
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, h.Name)
	}
}

func TestInput(t *testing.T) {
	dir := t.TempDir()
	put := func(name, text string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	put("Dockerfile", "FROM scratch")
	put("a", "1")
	put("x.log", "")
	put(".dockerignore", "*.log")
	digest := func(b Build) string {
		t.Helper()
		in, err := b.input()
		if err != nil {
			t.Fatal(err)
		}
		defer in.close()
		sum, err := in.digest(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		var sent bytes.Buffer
		if err := in.sendAs(t.Context(), &sent, sum); err != nil {
			t.Fatal(err)
		}
		if got := names(t, &sent); got != ".llmsandbox-dockerfile .dockerignore Dockerfile a" {
			t.Errorf("sent are %s, want \".llmsandbox-dockerfile .dockerignore Dockerfile a\"", got)
		}
		return string(sum)
	}
	b := Build{Context: dir}
	first := digest(b)
	old := time.Unix(1, 0)
	if err := os.Chtimes(filepath.Join(dir, "a"), old, old); err != nil {
		t.Fatal(err)
	}
	if digest(b) != first {
		t.Errorf("a time changes the digest: digest(b) = %v, want %v", digest(b), first)
	}
	put("x.log", "more")
	if digest(b) != first {
		t.Errorf("an ignored file changes the digest: digest(b) = %v, want %v", digest(b), first)
	}
	for what, other := range map[string]Build{
		"target": {Context: dir, Target: "t"}, "platform": {Context: dir, Platform: "linux/arm64"}, "label": {Context: dir, Labels: map[string]string{"a": "b"}},
		"argument": {Context: dir, Args: map[string]string{"a": "b"}}, "Dockerfile": {Context: dir, Content: "FROM x"},
	} {
		if digest(other) == first {
			t.Errorf("another %s has the same digest, want digest(other) != %v", what, first)
		}
	}
	put("a", "2")
	if digest(b) == first {
		t.Errorf("another file has the same digest: digest(b) = %v, want other than %v", digest(b), first)
	}
	in, err := b.input()
	if err != nil {
		t.Fatal(err)
	}
	defer in.close()
	if err := in.sendAs(t.Context(), io.Discard, []byte(first)); !errors.Is(err, errChanged) {
		t.Errorf("sent as another digest: %v, want %v", err, errChanged)
	}
}

// A link to a Dockerfile outside of the context is not followed.
func TestInputStaysInside(t *testing.T) {
	dir := t.TempDir()
	secret := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(secret, []byte("FROM hush"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"Dockerfile", ".dockerignore"} {
		if err := os.Symlink(secret, filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
		if _, err := (Build{Context: dir, Content: "FROM x"}).input(); name == ".dockerignore" && err == nil {
			t.Errorf("%s was read, want name != \".dockerignore\" or an error", name)
		}
	}
	if _, err := (Build{Context: dir}).input(); err == nil || strings.Contains(err.Error(), "hush") {
		t.Errorf("got %v, want an error without \"hush\"", err)
	}
}

func TestIgnore(t *testing.T) {
	for _, c := range []struct{ text, in, out string }{
		{"", "a .dockerignore", ""},
		{"# no\n\n  a  \n", "b ab xa/y", "a a/b"},
		{"*.log", "a/x.log x.logs", "x.log .log"},
		{"**/*.log", "", "x.log a/x.log a/b/x.log"},
		{"a/**/b", "a/c c/a/b", "a/b a/x/b a/x/y/b"},
		{"a/**", "b", "a/b a/b/c"},
		{"**", "", "a a/b .x"},
		{"/a/", "b/a", "a a/b"},
		{"a/../b", "a", "b"},
		{"?x[ab]", "x/xa yxc", "yxa"},
		{`a\*b`, "axb", "a*b"},
		{"a.b", "axb", "a.b"},
		{"*\n!keep\n!d/keep", "keep keep/x d/keep", "a d d/x"},
		{"d\n!d/keep\nd/keep/not", "d/keep d/keep/yes", "d d/x d/keep/not"},
		{".", "a", ""},
		{"\ufeffa", "b", "a"},
		{"a\r\nb", "c", "a b"},
	} {
		ig, err := parseIgnore([]byte(c.text))
		if err != nil {
			t.Errorf("%q: %v", c.text, err)
			continue
		}
		for names, want := range map[string]bool{c.in: false, c.out: true} {
			for _, name := range strings.Fields(names) {
				if got, err := ig.MatchesOrParentMatches(name); err != nil || got != want {
					t.Errorf("%q excludes %s: %v, %v, want %v", c.text, name, got, err, want)
				}
			}
		}
	}
	for _, bad := range []string{"!", "[", "[]", "a\\", "[z-a]"} {
		if _, err := parseIgnore([]byte(bad)); err == nil || !strings.Contains(err.Error(), "pattern") {
			t.Errorf("%q: %v, want an error containing \"pattern\"", bad, err)
		}
	}
}

func FuzzIgnore(f *testing.F) {
	f.Add("a/**\n!b", "a/b")
	f.Add("[^a]?*\\", "x")
	f.Fuzz(func(t *testing.T, text, name string) {
		ig, err := parseIgnore([]byte(text))
		if err == nil && name != "" && name[0] != '/' {
			if _, err := ig.MatchesOrParentMatches(name); err != nil {
				t.Errorf("%q is read, and fails at %q: %v", text, name, err)
			}
		}
	})
}
