package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// The tables are those of the golang.org/x/sys that the module requires.
func TestTables(t *testing.T) {
	for _, c := range tables {
		want, err := table(c.arch, c.variable)
		if err != nil {
			t.Fatal(err)
		}
		got, err := os.ReadFile(filepath.Join("..", c.file))
		if err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(string(want), string(got)); d != "" {
			t.Errorf("%s is not what the generator writes: run make generate (-want +got):\n%s", c.file, d)
		}
	}
}
