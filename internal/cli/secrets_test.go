package cli

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func TestSecretFlags(t *testing.T) {
	t.Setenv("FROM_ENV", "value-of-env")
	file := filepath.Join(t.TempDir(), "secrets")
	if err := os.WriteFile(file, []byte("# a comment\n\nIN_FILE=a=b@c@d.test:443, *.e.test\r\nFROM_ENV@f.test\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	got, err := (&secretFlags{secrets: []string{"GIVEN=12345678@a.test"}, files: []string{file}, bodies: []string{"IN_FILE"}}).options()
	if err != nil {
		t.Fatal(err)
	}
	want := [][]string{{"GIVEN", "12345678", "a.test"}, {"IN_FILE", "a=b@c", "d.test:443", "*.e.test"}, {"FROM_ENV", "value-of-env", "f.test"}}
	for i, s := range got {
		if !slices.Equal(append([]string{s.Name, s.Value}, s.Hosts...), want[i]) || s.Body != (s.Name == "IN_FILE") {
			t.Errorf("%+v, want %q", s, want[i])
		}
	}
	if len(got) != len(want) {
		t.Errorf("%d secrets, want %d", len(got), len(want))
	}
}

func TestSecretFlagsThatMakeNoSense(t *testing.T) {
	file := filepath.Join(t.TempDir(), "secrets")
	if err := os.WriteFile(file, []byte("A=canary-value\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, f := range []secretFlags{
		{secrets: []string{"A=canary-value"}}, {secrets: []string{"=canary-value@a.test"}}, {secrets: []string{"A=canary-value@"}}, {secrets: []string{"NOT_SET_ANYWHERE@a.test"}},
		{files: []string{file}}, {files: []string{file + "-missing"}}, {bodies: []string{"A"}},
	} {
		if _, err := f.options(); err == nil || strings.Contains(err.Error(), "canary-value") {
			t.Errorf("%+v: %v, want an error without \"canary-value\"", f, err)
		}
	}
}
