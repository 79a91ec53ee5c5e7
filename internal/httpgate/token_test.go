package httpgate

import (
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/llmsandbox/llmsandbox/backend"
)

const (
	tokenOne = "one-0123456789abcdef"
	tokenTwo = "two-0123456789abcdef"
)

func TestTokenFileIsMadeOnce(t *testing.T) {
	path := filepath.Join(t.TempDir(), "token")
	first, made, err := TokenFile(path)
	if err != nil || !made || len(first) != 1 || len(first[0]) != 43 {
		t.Fatalf("%d tokens, made %v, %v, want no error, made = true, len(first) = 1, len(first[0]) = 43", len(first), made, err)
	}
	if _, err := digests(first); err != nil {
		t.Error(err)
	}
	if info, err := os.Stat(path); err != nil || runtime.GOOS != "windows" && info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v, want no error, GOOS = \"windows\" or Perm = 0o600", info.Mode(), err)
	}
	again, made, err := TokenFile(path)
	if err != nil || made || !slices.Equal(first, again) {
		t.Errorf("again: made %v, the same %v, %v, want no error, made = false, first %v", made, slices.Equal(first, again), err, again)
	}
	if other := NewToken(); other == first[0] {
		t.Errorf("two tokens are the same: other = %v, want other than %v", other, first[0])
	}
}

func TestTokenFileRead(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string, mode os.FileMode) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), mode); err != nil {
			t.Fatal(err)
		}
		return path
	}
	got, _, err := TokenFile(write("two", "# ours\n\n "+tokenOne+" \r\n"+tokenTwo, 0o600))
	if err != nil || !slices.Equal(got, []string{tokenOne, tokenTwo}) {
		t.Errorf("%q, %v, want no error, got %q", got, err, []string{tokenOne, tokenTwo})
	}
	refused := map[string]string{
		"empty": write("empty", "", 0o600), "only comments": write("comments", "# x\n", 0o600),
		"large": write("large", strings.Repeat("x\n", maxTokenFile), 0o600), "a directory": dir,
	}
	if runtime.GOOS != "windows" {
		refused["others read it"] = write("open", tokenOne, 0o640)
	}
	for name, path := range refused {
		if _, _, err := TokenFile(path); !errors.Is(err, backend.ErrInvalid) {
			t.Errorf("%s: %v, want backend.ErrInvalid", name, err)
		}
	}
	if _, _, err := TokenFile(filepath.Join(dir, "none", "token")); err == nil {
		t.Error("made in a directory that is not there: got no error, want an error")
	}
}
