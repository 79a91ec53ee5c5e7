//go:build unix

package kerneltest

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
)

// kept fails unless the cells of State are still known.
func (k *Kernel) kept(c Cells) {
	k.t.Helper()
	if e := k.MustRun(c.State[len(c.State)-1]); e.Stdout != c.Out || e.Value["text/plain"] != c.Value {
		k.t.Errorf("got %q %q %q, want %q %q", e.Stdout, e.Value, e.Stderr, c.Out, c.Value)
	}
}

func (k *Kernel) prime(c Cells) {
	k.t.Helper()
	for _, code := range c.State[:len(c.State)-1] {
		if e := k.MustRun(code); e.Stdout != "" || e.Stderr != "" {
			k.t.Errorf("%q printed %q %q", code, e.Stdout, e.Stderr)
		}
	}
}

func state(t *testing.T, k *Kernel, c Cells) {
	before := tree(k.Workdir)
	k.prime(c)
	k.kept(c)
	k.kept(c)
	if e := k.MustRun(""); e.Value != nil || e.Stdout != "" {
		t.Errorf("an empty cell: %+v, want Value = nil, Stdout empty", e)
	}
	if first, second := k.MustRun(c.State[len(c.State)-1]), k.MustRun(c.State[len(c.State)-1]); second.Count != first.Count+1 {
		t.Errorf("counts %d, %d, want %d", first.Count, second.Count, first.Count+1)
	}
	if after := tree(k.Workdir); !slices.Equal(before, after) {
		t.Errorf("the working directory has %q", after)
	}
}

// tree lists a directory's files.
func tree(dir string) (names []string) {
	filepath.WalkDir(dir, func(p string, _ os.DirEntry, _ error) error {
		names = append(names, p)
		return nil
	})
	return names
}
